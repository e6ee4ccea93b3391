package capture

import "stackshot/kcdata"

// The second pass: each thread's context switches and run time, read again when
// all is recorded. Both only grow, and only when the thread runs. If they are unchanged,
// the thread did not run in between, and its record is of the same moment as those of
// all other threads that did not run.

// Activity is how much a thread has run: context switches, and run time in ns. Under
// kcdata.AtomicityAfter Switches counts how often it was put on a CPU.
type Activity struct{ Switches, Runtime uint64 }

// Second is what the second pass found. The engine fills the first group; collation,
// which has the records, fills the second.
type Second struct {
	Method  uint32              // kcdata.Atomicity*
	Threads map[uint32]Activity // by tid: those to be compared one by one
	Rest    int                 // Rest*: how to classify a thread that is not among them
	Span    int64               // ns, first record to last second reading
	Verify  int64               // ns, of this the second pass

	Compared, Ran, Gone, Missed uint32
	Who                         []kcdata.LinuxRan
}

// How to classify a recorded thread that the second pass did not list.
const (
	RestGone    = iota // every thread is in the list
	RestMissed         // the list broke off
	RestCounted        // engine trap has compared its part as a whole
)

// Of is the second pass for the threads of one part; nil: they are not compared.
func (x *Second) Of(r *Part) *Second {
	if x != nil && r.Hidden {
		x.Missed += r.Threads
		return nil
	}
	return x
}

// Look compares one recorded thread.
func (x *Second) Look(lx *kcdata.LinuxThread) {
	if lx.Present&(kcdata.ThreadIsSelf|kcdata.ThreadIsIdle) != 0 {
		return
	}
	now, ok := x.Threads[lx.Tid]
	switch {
	case ok:
		x.compare(lx, now)
	case x.Rest == RestGone:
		x.Gone++
	case x.Rest == RestMissed:
		x.Missed++
	}
}

func (x *Second) compare(lx *kcdata.LinuxThread, now Activity) {
	was := Activity{lx.Nvcsw + lx.Nivcsw, lx.SumExecRuntime}
	if x.Method == kcdata.AtomicityAfter {
		was.Switches = lx.Pcount
	}
	x.Compared++
	if now == was {
		return
	}
	x.Ran++
	if len(x.Who) < kcdata.MaxRan {
		x.Who = append(x.Who, kcdata.LinuxRan{
			Tid: lx.Tid, Tgid: lx.Tgid, Switches: now.Switches - was.Switches, RuntimeNs: now.Runtime - was.Runtime,
		})
	}
}

func (x *Second) Record() kcdata.LinuxAtomicity {
	return kcdata.LinuxAtomicity{
		Compared: x.Compared, Ran: x.Ran, Gone: x.Gone, Missed: x.Missed, Method: x.Method,
		SpanNs: uint64(max(x.Span, 0)), VerifyNs: uint64(max(x.Verify, 0)),
	}
}
