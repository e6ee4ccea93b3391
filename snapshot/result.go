package snapshot

import (
	"runtime/debug"
	"slices"
	"time"

	"stackshot/internal/capture"
	"stackshot/internal/collate"
	"stackshot/internal/topology"
	"stackshot/kcdata"
)

// Result describes a capture that was made. The KCData itself went to Request.Output.
type Result struct {
	collate.Summary // Tasks, Threads, Bytes, LeftOut, Seen, Vanished, Compared, Ran, Files, Warnings

	Engine     string
	Isolation  string
	Stopped    time.Duration // first CPU taken to last given back, summed over tries; 0: nothing was stopped
	Window     time.Duration // all arrived to first release, last try
	Arrival    time.Duration // first to last arrival, last try
	Release    time.Duration // first to last release, last try
	Elapsed    time.Duration // request to collation
	Census     time.Duration
	Tries      int
	CPUs       CPUs
	StopBroken int   // context switches of workers inside the window
	BufferSize int64 // bytes, like the next three
	BufferUsed int64
	Spilled    int64 // of chunks that came from another cluster's arena
	Overhead   int64 // of tails that nobody used again
}

// CPUs lists what the stop did with the online CPUs.
type CPUs struct {
	Online, Stopped, Working, Missing, Left []int
}

// Whole says that nothing is missing from the file.
func (r *Result) Whole() bool { return len(r.LeftOut) == 0 && len(r.CPUs.Missing) == 0 }

func newResult(c *capture.Raw, sum *collate.Summary) *Result {
	k := &c.Capture
	r := &Result{
		Summary: *sum, Engine: c.Engine, Isolation: c.Isolation,
		Stopped: time.Duration(k.StoppedNs), Window: time.Duration(k.WindowNs), Arrival: time.Duration(k.ArrivalNs),
		Release: time.Duration(k.ReleaseNs), Elapsed: time.Duration(k.ElapsedNs), Census: time.Duration(k.CensusNs),
		Tries: int(k.Tries), StopBroken: int(k.StopBroken),
		BufferSize: int64(k.BufferSize), BufferUsed: int64(k.BufferUsed), Overhead: int64(k.Overhead),
	}
	for _, cpu := range c.CPUs {
		n := int(cpu.CPU)
		r.CPUs.Online = append(r.CPUs.Online, n)
		for _, f := range []struct {
			flag uint32
			list *[]int
		}{
			{kcdata.CPUStopped, &r.CPUs.Stopped},
			{kcdata.CPUWorked, &r.CPUs.Working},
			{kcdata.CPUMissed, &r.CPUs.Missing},
			{kcdata.CPULeft, &r.CPUs.Left},
		} {
			if cpu.Flags&f.flag != 0 {
				*f.list = append(*f.list, n)
			}
		}
		r.Spilled += int64(cpu.SpillBytes)
	}
	return r
}

// Version is the module's version as built, or "devel".
func Version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "devel"
}

// stateWarnings puts first the warnings that a reader must know first.
func (s *Session) stateWarnings(c *capture.Raw) {
	var missed []int
	for _, cpu := range c.CPUs {
		if cpu.Flags&kcdata.CPUMissed != 0 && !slices.Contains(c.Moved, int(cpu.CPU)) {
			missed = append(missed, int(cpu.CPU))
		}
	}
	if len(missed) > 0 {
		c.Warn("cpu_missed", "CPU "+topology.FormatCPUList(missed)+" did not come to the stop within "+
			s.options.ArrivalBudget.String()+": it was left running, and what runs there keeps it for itself")
	}
	for _, cpu := range s.plan.Left {
		c.Warn("cpu_left_running", "CPU "+topology.FormatCPUList([]int{cpu})+" was left running: "+s.plan.Why(cpu).String())
	}
	s.throttleWarnings(c)
	if c.Capture.StopBroken > 0 {
		c.Warn("stop_broken", "a worker was taken off its CPU inside the window: other tasks ran then")
	}
}
