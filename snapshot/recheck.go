package snapshot

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"stackshot/internal/bpf"
	"stackshot/kcdata"
)

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
func (x *recheck) of(r recorded) *recheck {
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

// recount is the second pass of engine pull, by the main worker in the window:
// one more walk over all tasks, or over those asked for.
func (t *try) recount(by int64) {
	if t.recountProg < 0 || t.state.ranShort() {
		return
	}
	if t.pids == nil {
		t.recountDone = t.recountScope(&bpf.Scope{}, by)
		return
	}
	for i := range t.pids {
		scope := bpf.TaskScope(t.pids[i].Tgid)
		if !t.recountScope(&scope, by) {
			return
		}
	}
	t.recountDone = true
}

// recountScope reads one scope to its end. False: the pause is spent, or the room.
func (t *try) recountScope(scope *bpf.Scope, by int64) bool {
	var pass bpf.Iterator
	if errno := pass.Open(t.recountProg, scope); errno != 0 {
		return errno == unix.ESRCH // the task has ended
	}
	defer pass.Close()
	for t.state.phase() == phaseDrained && nanotime() < by {
		room := t.mem.second[t.recounted:]
		n, errno := pass.Read(room[:min(len(room), censusRead)])
		if errno != 0 {
			return false
		}
		if n == 0 {
			return true
		}
		t.recounted += n
	}
	return false
}

// secondOf reads what recount left behind.
func (t *try) secondOf(team []*worker) *recheck {
	if t.recountProg < 0 {
		return nil
	}
	x := &recheck{method: kcdata.AtomicityInWindow, threads: map[uint32]activity{}, rest: restMissed}
	if t.recountDone {
		x.rest = restGone
	}
	for off := 0; off+bpf.SecondSize <= t.recounted; off += bpf.SecondSize {
		e := (*bpf.Second)(unsafe.Pointer(&t.mem.second[off]))
		x.threads[e.Tid] = activity{e.Switches, e.Runtime}
	}
	x.times(team)
	return x
}

// times takes the span from the workers' stamps.
func (x *recheck) times(team []*worker) {
	var from, to int64
	for _, w := range team {
		if w.away || !w.stamp.in {
			continue
		}
		from, to = earlier(from, w.stamp.window), max(to, w.stamp.verified)
		x.verify = max(x.verify, w.stamp.verified-w.stamp.checked)
	}
	x.span = to - from
}
