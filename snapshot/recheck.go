package snapshot

import "stackshot/kcdata"

// The second look: each thread's context switches and run time, read again when
// all is recorded. Both only grow, and only by running: where they are what
// they were, the thread did not run in between, and its record is of the same
// moment as all the others that did not.

// activity is what a thread has by running. Under AtomicityAfter switches counts
// how often it was put on a CPU.
type activity struct{ switches, runtime uint64 }

// recheck is what the second look found. The engine fills the first group, the
// collation, which has the records, the second.
type recheck struct {
	method  uint32              // kcdata.Atomicity*
	threads map[uint32]activity // by tid: those to be compared one by one
	rest    int                 // what a thread that is not among them is
	span    int64               // ns, first record to last second reading
	verify  int64               // ns, of this the second pass

	compared, ran, gone, missed uint32
	who                         []kcdata.LinuxRan
}

// What a recorded thread is that the list of second readings does not have.
const (
	restGone    = iota // every thread is in the list
	restMissed         // the list broke off
	restCounted        // engine trap has compared its part as a whole
)

// of is the recheck for the threads of one task; nil: they are not compared.
func (x *recheck) of(r *recorded) *recheck {
	if x != nil && r.hidden {
		x.missed += r.threads
		return nil
	}
	return x
}

// look compares one recorded thread.
func (x *recheck) look(lx *kcdata.LinuxThread) {
	if lx.Present&(kcdata.ThreadIsSelf|kcdata.ThreadIsIdle) != 0 {
		return
	}
	now, ok := x.threads[lx.Tid]
	switch {
	case ok:
		x.compare(lx, now)
	case x.rest == restGone:
		x.gone++
	case x.rest == restMissed:
		x.missed++
	}
}

func (x *recheck) compare(lx *kcdata.LinuxThread, now activity) {
	was := activity{lx.Nvcsw + lx.Nivcsw, lx.SumExecRuntime}
	if x.method == kcdata.AtomicityAfter {
		was.switches = lx.Pcount
	}
	x.compared++
	if now == was {
		return
	}
	x.ran++
	if len(x.who) < kcdata.MaxRan {
		x.who = append(x.who, kcdata.LinuxRan{
			Tid: lx.Tid, Tgid: lx.Tgid, Switches: now.switches - was.switches, RuntimeNs: now.runtime - was.runtime,
		})
	}
}

func (x *recheck) record() kcdata.LinuxAtomicity {
	return kcdata.LinuxAtomicity{
		Compared: x.compared, Ran: x.ran, Gone: x.gone, Missed: x.missed, Method: x.method,
		SpanNs: uint64(max(x.span, 0)), VerifyNs: uint64(max(x.verify, 0)),
	}
}
