package snapshot

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"stackshot/internal/bpf"
	"stackshot/kcdata"
)

// recount is the second pass of engine pull, by the main worker in the window:
// one more walk over all tasks, or over those asked for.
func (t *pullTry) recount(by int64) {
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
func (t *pullTry) recountScope(scope *bpf.Scope, by int64) bool {
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

// second reads what recount left behind.
func (t *pullTry) second() *recheck {
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
	x.span, x.verify = t.spanOfSecond()
	return x
}
