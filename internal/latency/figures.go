package latency

import (
	"encoding/json"
	"io"

	"stackshot/internal/account"
	"stackshot/internal/show"
	"stackshot/kcdata"
)

// Figures are the figures of one file.
type Figures struct {
	File    string            `json:"file"`
	Machine account.Machine   `json:"machine"`
	Pause   *Pause            `json:"pause,omitempty"` // nil: the file does not say how the capture went
	Tasks   Costs[TaskCost]   `json:"task_costs"`
	Threads Costs[ThreadCost] `json:"thread_costs"`
	Sched   Sched             `json:"scheduling"`
}

// Measure takes the figures from a decoded file called name. Lists of the
// slowest and the longest have at most top entries. The figures keep nothing of s but
// strings. The figures of tasks and threads are of those in only (nil: all), and of their tasks;
// a pause is always of the whole machine.
func Measure(name string, s *kcdata.Snapshot, top int, only map[*kcdata.Thread]bool) *Figures {
	asked := func(th *kcdata.Thread) bool { return only == nil || only[th] }
	f := &Figures{File: show.Clean(name), Machine: account.MachineOf(s), Pause: pauseOf(s), Sched: schedOf(s, top, asked)}
	f.Tasks, f.Threads = costsOf(s, top, asked)
	return f
}

// first returns a copy of the first n elements of list, or of all; never nil, because JSON
// has lists everywhere.
func first[T any](list []T, n int) []T {
	return append([]T{}, list[:max(0, min(n, len(list)))]...)
}

// JSONVersion is the version of the form that JSON writes and
// docs/latency-json.md describes. Keys are added without raising it.
const JSONVersion = 1

// Failed is one file that could not be read.
type Failed struct{ File, Error string }

// JSON writes the figures of every file, where the threads of a series waited, and the distributions over all of
// them, as one object. Errors are the writer's.
func JSON(w io.Writer, files []*Figures, failed []Failed, waits *Waits, top int) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	return enc.Encode(show.Object{
		{"format", "stackshot-latency"}, {"version", JSONVersion},
		{"where_they_wait", waits.All(top)},
		{"files", append([]*Figures{}, files...)}, {"over_files", Over(files)},
		{"failed", show.List(failed, func(f *Failed) show.Object {
			return show.Object{{"file", show.Clean(f.File)}, {"error", show.Clean(f.Error)}}
		})},
	})
}
