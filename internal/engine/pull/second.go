package pull

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"stackshot/internal/bpf"
	"stackshot/internal/capture"
	"stackshot/internal/clock"
	"stackshot/internal/engine/stop"
	"stackshot/kcdata"
)

// secondPass is the second pass of engine pull, by the main worker in the window:
// one more walk over all tasks, or over those asked for.
func (t *try) secondPass(by int64) {
	if t.programs.Recount == nil || t.State.RanShort() {
		return
	}
	if t.pids == nil {
		t.secondDone = t.readScope(&bpf.Scope{}, by)
		return
	}
	for i := range t.pids {
		scope := bpf.TaskScope(t.pids[i].Tgid)
		if !t.readScope(&scope, by) {
			return
		}
	}
	t.secondDone = true
}

// readScope reads one scope to its end. False: the pause, or the memory, is used up.
func (t *try) readScope(scope *bpf.Scope, by int64) bool {
	var pass bpf.Iterator
	if errno := pass.Open(t.programs.Recount.FD(), scope); errno != 0 {
		return errno == unix.ESRCH // the task has ended
	}
	defer pass.Close()
	for t.State.Phase() == stop.PhaseDrained && clock.Nanotime() < by {
		room := t.mem.Second[t.secondLen:]
		n, errno := pass.Read(room[:min(len(room), censusRead)])
		if errno != 0 {
			return false
		}
		if n == 0 {
			return true
		}
		t.secondLen += n
	}
	return false
}

// second makes a capture.Second of what secondPass has read.
func (t *try) second() *capture.Second {
	if t.programs.Recount == nil {
		return nil
	}
	x := &capture.Second{Method: kcdata.AtomicityInWindow, Threads: map[uint32]capture.Activity{}, Rest: capture.RestMissed}
	if t.secondDone {
		x.Rest = capture.RestGone
	}
	for off := 0; off+bpf.SecondSize <= t.secondLen; off += bpf.SecondSize {
		e := (*bpf.Second)(unsafe.Pointer(&t.mem.Second[off]))
		x.Threads[e.Tid] = capture.Activity{Switches: e.Switches, Runtime: e.Runtime}
	}
	x.Span, x.Verify = t.SpanOfSecond()
	return x
}
