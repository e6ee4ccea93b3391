package latency

import (
	"stackshot/internal/show"
	"stackshot/kcdata"
)

// Figures is what one file says.
type Figures struct {
	File    string      `json:"file"`
	Machine Machine     `json:"machine"`
	Pause   *Pause      `json:"pause,omitempty"` // nil: the file does not say how the capture went
	Tasks   TaskCosts   `json:"task_costs"`
	Threads ThreadCosts `json:"thread_costs"`
	Sched   Sched       `json:"scheduling"`
}

// Machine is whose figures these are.
type Machine struct {
	Hostname   string  `json:"hostname,omitempty"`
	Release    string  `json:"release,omitempty"`
	Engine     string  `json:"engine,omitempty"`
	Isolation  string  `json:"isolation,omitempty"`
	Request    string  `json:"request,omitempty"`
	RealtimeNs *uint64 `json:"realtime_ns,omitempty"` // since the epoch
	Tasks      int     `json:"tasks"`
	Threads    int     `json:"threads"`
	CPUs       int     `json:"cpus"`
	Stopped    int     `json:"cpus_stopped"`
	Problems   int     `json:"problems"` // contradictions in the file; the report names them
}

// Measure takes the figures out of a decoded file called name. Lists of the
// slowest and the longest have at most top entries. It keeps nothing of s but
// its strings and records.
func Measure(name string, s *kcdata.Snapshot, top int) *Figures {
	return &Figures{
		File: show.Clean(name), Machine: machineOf(s), Pause: pauseOf(s),
		Tasks: taskCosts(s, top), Threads: threadCosts(s, top), Sched: schedOf(s, top),
	}
}

// first returns at most n of list, which it never returns nil.
func first[T any](list []T, n int) []T {
	out := make([]T, max(0, min(n, len(list))))
	copy(out, list)
	return out
}

func machineOf(s *kcdata.Snapshot) Machine {
	m := Machine{
		Hostname: show.Clean(s.Hostname), Release: show.Clean(s.Release), Engine: show.Clean(s.Engine),
		Isolation: show.Clean(s.Isolation), Request: show.Clean(s.Request),
		Tasks: len(s.Tasks), Threads: s.ThreadCount(), CPUs: len(s.CPUs), Problems: len(s.Problems),
	}
	if s.HasMachine && s.Machine.RealtimeNs != 0 {
		m.RealtimeNs = copied(&s.Machine.RealtimeNs) // a pointer into s would keep all of it
	}
	for i := range s.CPUs {
		if s.CPUs[i].Flags&kcdata.CPUStopped != 0 {
			m.Stopped++
		}
	}
	return m
}
