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

// recount is the second pass of engine pull, by the main worker in the window:
// one more walk over all tasks, or over those asked for.
func (t *try) recount(by int64) {
	if t.recountProg < 0 || t.State.RanShort() {
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

// recountScope reads one scope to its end. False: the pause, or the memory, is used up.
func (t *try) recountScope(scope *bpf.Scope, by int64) bool {
	var pass bpf.Iterator
	if errno := pass.Open(t.recountProg, scope); errno != 0 {
		return errno == unix.ESRCH // the task has ended
	}
	defer pass.Close()
	for t.State.Phase() == stop.PhaseDrained && clock.Nanotime() < by {
		room := t.mem.Second[t.recounted:]
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

// second makes a capture.Second of what recount has read.
func (t *try) second() *capture.Second {
	if t.recountProg < 0 {
		return nil
	}
	x := &capture.Second{Method: kcdata.AtomicityInWindow, Threads: map[uint32]capture.Activity{}, Rest: capture.RestMissed}
	if t.recountDone {
		x.Rest = capture.RestGone
	}
	for off := 0; off+bpf.SecondSize <= t.recounted; off += bpf.SecondSize {
		e := (*bpf.Second)(unsafe.Pointer(&t.mem.Second[off]))
		x.Threads[e.Tid] = capture.Activity{Switches: e.Switches, Runtime: e.Runtime}
	}
	x.Span, x.Verify = t.SpanOfSecond()
	return x
}
