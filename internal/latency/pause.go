package latency

import (
	"cmp"

	"stackshot/internal/account"
	"stackshot/internal/show"
	"stackshot/kcdata"
)

// Pause says how the capture went: how long the pause was, and where its time went.
type Pause struct {
	account.Pause
	Phases    []Phases           `json:"phases"` // one per CPU that was stopped
	Sum       *Phases            `json:"phases_sum,omitempty"`
	Tries     []Try              `json:"tries"`
	TryCount  uint32             `json:"try_count"`
	LostNs    *uint64            `json:"lost_ns,omitempty"`    // stopped in tries that were thrown away; nil: not known
	BetweenNs *uint64            `json:"between_ns,omitempty"` // the machine ran, between the tries
	Arenas    []Arena            `json:"arenas"`               // one per cluster
	Cost      *Cost              `json:"cost,omitempty"`       // nil: no phases in the file
	Ran       *account.Atomicity `json:"atomicity,omitempty"`  // nil: nothing was read twice
}

// Arena is the memory of one cluster.
type Arena kcdata.LinuxArena

// MarshalJSON writes the record's fields by their names.
func (a Arena) MarshalJSON() ([]byte, error) {
	return show.Object{
		{"cluster", a.Cluster}, {"size", a.Size}, {"used", a.Used}, {"spill_out", a.SpillOut}, {"spill_in", a.SpillIn},
		{"freed_size", a.FreedSize}, {"reused", a.Reused}, {"overhead", a.Overhead}, {"entries", a.Entries},
		{"allocs", a.Allocs}, {"refused", a.Refused},
	}.MarshalJSON()
}

// Try is one try of the capture.
type Try struct {
	Outcome    string `json:"outcome"` // see outcomes
	StoppedNs  uint64 `json:"stopped_ns"`
	WindowNs   uint64 `json:"window_ns"`
	RestNs     uint64 `json:"rest_ns"`     // for which the machine ran after the try
	BufferSize uint64 `json:"buffer_size"` // bytes
	BufferUsed uint64 `json:"buffer_used"` // bytes
}

// Cost is what one thread cost, over all CPUs.
type Cost struct {
	Threads     uint64   `json:"threads"`               // recorded in the window
	RecordNs    uint64   `json:"record_per_thread_ns"`  // recording alone, CPU time
	StoppedNs   uint64   `json:"stopped_per_thread_ns"` // of the whole pause, last try
	UnwindNs    *uint64  `json:"unwind_per_thread_ns,omitempty"`
	UnwindShare *float64 `json:"unwind_share,omitempty"` // of recording; nil: not measured
}

func pauseOf(s *kcdata.Snapshot) *Pause {
	if !s.HasCapture {
		return nil
	}
	var toStop *uint64
	if t, ok := ticksOf(s); ok && s.Latency != nil {
		toStop = new(t.ns(s.Latency.SetupMt))
	}
	p := &Pause{
		Pause: account.PauseOf(s, toStop), TryCount: s.Capture.Tries,
		Phases: []Phases{}, Arenas: []Arena{}, Ran: account.AtomicityOf(s),
	}
	for i := range s.Phases {
		p.Phases = append(p.Phases, phasesOf(&s.Phases[i]))
	}
	for _, a := range s.Arenas {
		p.Arenas = append(p.Arenas, Arena(a))
	}
	p.Sum = sumPhases(s.Phases)
	p.Cost = costOf(s, p)
	p.tries(s.Tries)
	return p
}

// tries counts every try but the last as lost: the last try made the file, even if
// something is missing from it.
func (p *Pause) tries(records []kcdata.LinuxTry) {
	p.Tries = make([]Try, len(records))
	lost, between := uint64(0), uint64(0)
	for i, r := range records {
		p.Tries[i] = Try{outcome(r.Outcome), r.StoppedNs, r.WindowNs, r.RestNs, r.BufferSize, r.BufferUsed}
		if i < len(records)-1 {
			lost, between = sum(lost, r.StoppedNs), sum(between, r.RestNs)
		}
	}
	if len(records) > 0 || p.TryCount == 1 {
		p.LostNs, p.BetweenNs = &lost, &between
	}
}

// outcomes are the stable names of kcdata.Try*.
var outcomes = map[uint32]string{
	kcdata.TryWhole: "whole", kcdata.TryNoSpace: "no_space", kcdata.TryQueueFull: "queue_full", kcdata.TryNotStopped: "not_stopped",
}

func outcome(code uint32) string { return cmp.Or(outcomes[code], "unknown") }

// costOf divides the time that the CPUs spent by the threads that they recorded. Threads that
// were read from /proc after the release do not count.
func costOf(s *kcdata.Snapshot, p *Pause) *Cost {
	threads := uint64(0)
	for i := range s.CPUs {
		threads += uint64(s.CPUs[i].Threads)
	}
	if p.Sum == nil || threads == 0 {
		return nil
	}
	c := &Cost{Threads: threads, RecordNs: p.Sum.RecordNs / threads, StoppedNs: lastStopped(s) / threads}
	if u := p.Sum.unwind(); u != nil && p.Sum.RecordNs > 0 {
		each, share := *u/threads, float64(*u)/float64(p.Sum.RecordNs)
		c.UnwindNs, c.UnwindShare = &each, &share
	}
	return c
}

// lastStopped is how long the machine stood still in the last try, in ns.
func lastStopped(s *kcdata.Snapshot) uint64 {
	if n := len(s.Tries); n > 0 {
		return s.Tries[n-1].StoppedNs
	}
	return s.Capture.StoppedNs
}
