package latency

import (
	"cmp"
	"slices"

	"stackshot/internal/show"
	"stackshot/kcdata"
)

// OneInstant is how much of one instant the file is: kcdata.LinuxAtomicity.
type OneInstant struct {
	Compared uint32      `json:"compared"`
	Ran      uint32      `json:"ran"`
	Gone     uint32      `json:"gone"`
	Missed   uint32      `json:"missed"`
	Method   string      `json:"method"` // in_window, after, unknown
	SpanNs   uint64      `json:"span_ns"`
	VerifyNs uint64      `json:"verify_ns"`
	Threads  []RanThread `json:"threads"` // those that ran, longest first
}

// RanThread is one thread that ran between its record and its second reading.
type RanThread struct {
	Who
	Switches  uint64 `json:"switches"`
	RuntimeNs uint64 `json:"runtime_ns"`
}

func instantOf(s *kcdata.Snapshot) *OneInstant {
	a := s.Atomicity
	if a == nil {
		return nil
	}
	names := indexOf(s)
	o := &OneInstant{
		Compared: a.Compared, Ran: a.Ran, Gone: a.Gone, Missed: a.Missed, Method: "unknown",
		SpanNs: a.SpanNs, VerifyNs: a.VerifyNs, Threads: []RanThread{},
	}
	switch a.Method {
	case kcdata.AtomicityInWindow:
		o.Method = "in_window"
	case kcdata.AtomicityAfter:
		o.Method = "after"
	}
	for _, r := range s.Ran {
		o.Threads = append(o.Threads, RanThread{names.who(r), r.Switches, r.RuntimeNs})
	}
	slices.SortStableFunc(o.Threads, func(a, b RanThread) int { return cmp.Compare(b.RuntimeNs, a.RuntimeNs) })
	return o
}

// index finds the threads of LinuxRan by id. Constant after indexOf.
type index map[uint64]Who

func indexOf(s *kcdata.Snapshot) index {
	x := make(index, len(s.Ran))
	for _, r := range s.Ran {
		x[uint64(r.Tid)] = Who{}
	}
	for _, t := range s.Tasks {
		for _, th := range t.Threads {
			if _, wanted := x[th.ID]; wanted {
				x[th.ID] = whoThread(t, th)
			}
		}
	}
	return x
}

// who names a thread; one that is not in the file has its numbers only.
func (x index) who(r kcdata.LinuxRan) Who {
	if w := x[uint64(r.Tid)]; w.Tid != nil {
		return w
	}
	return Who{ID: show.Hex(r.Tid), Pid: &r.Tgid, Tid: &r.Tid}
}
