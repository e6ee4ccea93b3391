package stop

import (
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"stackshot/internal/clock"
	"stackshot/kcdata"
)

// This file is what a worker runs between its wake and its release. Nothing here
// may allocate, lock, log or wait for another Go thread (invariant 1 of
// snapshot/doc.go): while the CPUs are held, no other thread runs.

// Settle is how long the main worker sleeps between its own wake and the others'.
// Meanwhile ordinary work comes back to the CPUs. So the stop displaces the machine's
// work, and not the thread that asked for the stop.
const Settle = 3 * time.Millisecond

// turn is one worker's part in one try.
func (w *Worker) turn(main bool) {
	t := w.Try
	w.Stamp.Main = main
	if main && !w.openGate(t) {
		return
	}
	if h := w.Gate.Hooks.BeforeArrival; h != nil {
		h(w.CPU)
	}
	procPin()
	w.Stamp.Taken = clock.Nanotime()
	w.Note(kcdata.TraceTaken, 0)
	w.perf.begin()
	if w.Elsewhere() {
		w.Stamp.Left = w.Stamp.Taken
	} else {
		t.recorder.Hold(w)
	}
	w.cost = w.perf.end()
	atomic.StoreUint32(&w.SlotMem().Left, 1)
	w.Note(kcdata.TraceLeft, 0)
	procUnpin()
}

// Elsewhere reports whether this worker is on another CPU than the one that it is to
// stop. Its own CPU runs on then, so the worker must not be counted in.
func (w *Worker) Elsewhere() bool {
	w.Stamp.on = CurrentCPU()
	return w.Stamp.on != w.CPU
}

// Arrive counts this worker in, for an engine whose workers hold their CPUs
// themselves, and waits for the decision. False: it is no part of the stop.
func (w *Worker) Arrive() bool {
	t := w.Try
	if clock.Nanotime() >= t.arriveBy.Load() { // too late, even if nobody has noticed
		t.State.Expire()
	}
	if !t.State.Arrive(w.Stamp.Main) {
		return false
	}
	w.Stamp.Arrived = clock.Nanotime()
	w.Note(kcdata.TraceArrived, t.State.Word.Load())
	return w.decided(t)
}

// openGate is the second step of the wake: sleep, fix the deadlines, wake the others
// with one write. False: the coordinator has given this worker up. The words it
// writes are those of its own try, even if the next one is under way.
func (w *Worker) openGate(t *Try) bool {
	if t.settle > 0 {
		ts := unix.NsecToTimespec(t.settle)
		unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &ts, nil)
	}
	if t.State.Phase() != PhaseArriving {
		return false
	}
	now := clock.Nanotime()
	t.arriveBy.Store(now + t.arrivalBudget)
	t.PauseBy.Store(now + t.pauseBudget)
	if h := w.Gate.Hooks.Opening; h != nil {
		h(w.CPU)
	}
	if !w.Gate.open(t.Number) {
		return false
	}
	if len(t.Here) > 1 {
		ring(w.Gate.all)
	}
	return true
}

// decided waits for the one decision (invariant 3 of snapshot/doc.go), at most to the
// one arrival deadline.
func (w *Worker) decided(t *Try) bool {
	by := t.arriveBy.Load()
	p := t.State.Phase()
	for p == PhaseArriving {
		if clock.Nanotime() >= by {
			p = t.State.Expire()
			break
		}
		p = t.State.Phase()
	}
	return p != PhaseAborted && p != PhasePanicked
}

// Await spins while the try stands at p, at most until by.
func (t *Try) Await(p Phase, by int64) {
	for t.State.Phase() == p && clock.Nanotime() < by {
	}
}

// CurrentCPU is the CPU on which this thread runs.
func CurrentCPU() int {
	var cpu uint32
	unix.RawSyscall(unix.SYS_GETCPU, uintptr(unsafe.Pointer(&cpu)), 0, 0)
	return int(cpu)
}
