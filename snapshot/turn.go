package snapshot

import (
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"stackshot/kcdata"
)

// This file is what a worker runs between its wake and its release. Nothing
// here may allocate, lock, log or wait for another Go thread (rule 1): while
// the CPUs are held, no other thread runs.

// settle is how long the main worker sleeps between its own wake and the
// others': ordinary work comes back to the CPUs, so that what the stop then
// displaces is the machine's work and not the thread that asked for the stop.
const settle = 3 * time.Millisecond

// turn is one worker's part in one try.
func (w *worker) turn(main bool) {
	t := w.try
	w.stamp.main = main
	if main && !w.openGate(t) {
		return
	}
	if h := w.gate.hooks.beforeArrival; h != nil {
		h(w.cpu)
	}
	procPin()
	w.stamp.taken = nanotime()
	w.note(kcdata.TraceTaken, 0)
	w.perf.begin()
	if w.elsewhere() {
		w.stamp.left = w.stamp.taken
	} else {
		t.recorder.hold(w)
	}
	w.cost = w.perf.end()
	atomic.StoreUint32(&w.slotMem().Left, 1)
	w.note(kcdata.TraceLeft, 0)
	procUnpin()
}

// elsewhere asks whether this worker is on another CPU than it is to stop, which
// runs on: it does not count for that.
func (w *worker) elsewhere() bool {
	w.stamp.on = currentCPU()
	return w.stamp.on != w.cpu
}

// arrive counts this worker in, for an engine whose workers hold their CPUs
// themselves, and waits for the decision. False: it is no part of the stop.
func (w *worker) arrive() bool {
	t := w.try
	if nanotime() >= t.arriveBy.Load() { // too late, even if nobody has noticed
		t.state.expire()
	}
	if !t.state.arrive(w.stamp.main) {
		return false
	}
	w.stamp.arrived = nanotime()
	w.note(kcdata.TraceArrived, t.state.word.Load())
	return w.decided(t)
}

// openGate is the second step of the wake: sleep, fix the deadlines, release
// the others with one write. False: the coordinator has given this worker up. The
// words it writes are its own try's, also where the next one is under way.
func (w *worker) openGate(t *try) bool {
	if t.settle > 0 {
		ts := unix.NsecToTimespec(t.settle)
		unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &ts, nil)
	}
	if t.state.phase() != phaseArriving {
		return false
	}
	now := nanotime()
	t.arriveBy.Store(now + t.arrivalBudget)
	t.pauseBy.Store(now + t.pauseBudget)
	if h := w.gate.hooks.opening; h != nil {
		h(w.cpu)
	}
	if !w.gate.open(t.number) {
		return false
	}
	if len(t.here) > 1 {
		ring(w.gate.all)
	}
	return true
}

// decided waits for the one decision (invariant 3), at most to the one arrival
// deadline.
func (w *worker) decided(t *try) bool {
	by := t.arriveBy.Load()
	p := t.state.phase()
	for p == phaseArriving {
		if nanotime() >= by {
			p = t.state.expire()
			break
		}
		p = t.state.phase()
	}
	return p != phaseAborted
}

// await spins while the try stands at p, at most until by.
func (t *try) await(p phase, by int64) {
	for t.state.phase() == p && nanotime() < by {
	}
}

// currentCPU is where this thread runs; the request's initiator.
func currentCPU() int {
	var cpu uint32
	unix.RawSyscall(unix.SYS_GETCPU, uintptr(unsafe.Pointer(&cpu)), 0, 0)
	return int(cpu)
}
