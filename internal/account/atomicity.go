package account

import (
	"cmp"
	"fmt"
	"slices"

	"stackshot/internal/show"
	"stackshot/kcdata"
)

// Atomicity says how close the file is to one instant: kcdata.LinuxAtomicity.
type Atomicity struct {
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

// methods are the stable names of kcdata.Atomicity*.
var methods = map[uint32]string{kcdata.AtomicityInWindow: "in_window", kcdata.AtomicityAfter: "after"}

// AtomicityOf returns nil if no thread was read twice.
func AtomicityOf(s *kcdata.Snapshot) *Atomicity {
	a := s.Atomicity
	if a == nil {
		return nil
	}
	out := &Atomicity{
		Compared: a.Compared, Ran: a.Ran, Gone: a.Gone, Missed: a.Missed, Method: cmp.Or(methods[a.Method], "unknown"),
		SpanNs: a.SpanNs, VerifyNs: a.VerifyNs, Threads: []RanThread{},
	}
	names := whoRan(s)
	for _, r := range s.Ran {
		out.Threads = append(out.Threads, RanThread{names[uint64(r.Tid)], r.Switches, r.RuntimeNs})
	}
	slices.SortStableFunc(out.Threads, func(a, b RanThread) int { return cmp.Compare(b.RuntimeNs, a.RuntimeNs) })
	return out
}

// whoRan names the threads of s.Ran by id. A thread that is not in the file is named by its
// numbers alone.
func whoRan(s *kcdata.Snapshot) map[uint64]Who {
	names := make(map[uint64]Who, len(s.Ran))
	for _, r := range s.Ran {
		names[uint64(r.Tid)] = Who{ID: show.Hex(r.Tid), Pid: &r.Tgid, Tid: &r.Tid}
	}
	for _, t := range s.Tasks {
		for _, th := range t.Threads {
			if _, ran := names[th.ID]; ran {
				names[th.ID] = WhoThread(t, th)
			}
		}
	}
	return names
}

// Full is the sentence of `stackshot latency`.
func (a *Atomicity) Full() string {
	when := "between two readings ("
	switch a.Method {
	case "in_window":
		when = "during the window (second pass " + show.Fine(a.VerifyNs) + ", "
	case "after":
		when = "between their record and a second reading ("
	}
	var s show.Parts
	s.Add("%s of %s threads ran %sspan %s)", show.Thousands(uint64(a.Ran)), show.Thousands(uint64(a.Compared)), when, show.Fine(a.SpanNs))
	s.If(a.Gone > 0, "%s gone at the second reading", show.Thousands(uint64(a.Gone)))
	s.If(a.Missed > 0, "%s could not be read again", show.Thousands(uint64(a.Missed)))
	return s.Join("; ")
}

// ranShown is how many of the threads that ran are named in the report's sentence.
const ranShown = 4

// BriefAtomicity is the sentence of the report; "" if no thread was read twice.
func BriefAtomicity(s *kcdata.Snapshot) string {
	a := s.Atomicity
	if a == nil {
		return ""
	}
	when := "while they were recorded"
	if a.Method == kcdata.AtomicityInWindow && s.Isolation != "none" {
		when = "during the window"
	}
	text := fmt.Sprintf("%d of %s ran %s (%s)", a.Ran, show.Count(int(a.Compared), "thread"), when, show.Duration(a.SpanNs))
	var who show.Parts
	for _, r := range s.Ran[:min(ranShown, len(s.Ran))] {
		who.Add("%s", briefWho(s, r))
	}
	who.If(len(s.Ran) > ranShown, "...")
	if len(who) > 0 {
		text += ": " + who.Join(", ")
	}
	if n := int(a.Gone + a.Missed); n > 0 {
		text += fmt.Sprintf("; %s could not be compared", show.Count(n, "more thread"))
	}
	return text
}

// briefWho names a thread that ran by its task, if the file has it, and its number.
func briefWho(s *kcdata.Snapshot, r kcdata.LinuxRan) string {
	for _, t := range s.Tasks {
		if t.ID == uint64(r.Tgid) {
			return fmt.Sprintf("%s tid %d", Task(t), r.Tid)
		}
	}
	return fmt.Sprintf("tid %d of task %d", r.Tid, r.Tgid)
}

// AtomicityJSON is the object of the report; nil if no thread was read twice.
func AtomicityJSON(s *kcdata.Snapshot) show.Object {
	a := s.Atomicity
	if a == nil {
		return nil
	}
	return show.Object{
		{"method", methods[a.Method]}, {"compared", a.Compared}, {"ran", a.Ran}, {"gone", a.Gone}, {"missed", a.Missed},
		{"span_ns", a.SpanNs}, {"verify_ns", a.VerifyNs},
		{"who", show.List(s.Ran, func(r *kcdata.LinuxRan) show.Object {
			return show.Object{{"pid", r.Tgid}, {"tid", r.Tid}, {"switches", r.Switches}, {"runtime_ns", r.RuntimeNs}}
		})},
	}
}
