package snapshot

import (
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/bpf"
	"stackshot/kcdata"
	"stackshot/workqueue"
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
	if h := w.team.hooks.beforeArrival; h != nil {
		h(w.cpu)
	}
	procPin()
	w.stamp.taken = nanotime()
	w.note(kcdata.TraceTaken, 0)
	w.perf.begin()
	before := w.switched()
	if w.elsewhere() {
		w.stamp.left = w.stamp.taken
	} else if t.trap != nil {
		w.enterTrap(t)
	} else {
		w.hold(t, main)
		w.stamp.switches = uint32(w.switched() - before)
		w.stamp.left = nanotime()
		w.stamp.in = !w.elsewhere() && w.stamp.in
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

// hold is the stop as engine pull does it: this thread keeps the CPU.
func (w *worker) hold(t *try, main bool) {
	if nanotime() >= t.arriveBy.Load() { // too late, even if nobody has noticed
		t.state.expire()
	}
	if t.state.arrive(main) {
		w.stamp.arrived = nanotime()
		w.note(kcdata.TraceArrived, t.state.word.Load())
		if w.decided(t) {
			w.stamp.in = true
			w.inWindow(t)
		}
	}
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
	if h := w.team.hooks.opening; h != nil {
		h(w.cpu)
	}
	if !w.team.open(t.number) {
		return false
	}
	if t.workers > 1 {
		ring(w.team.gate)
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

func (w *worker) inWindow(t *try) {
	w.stamp.window = nanotime()
	w.stamp.decided = w.stamp.window
	w.note(kcdata.TraceDecided, t.state.word.Load())
	if h := w.team.hooks.inWindow; h != nil {
		h(w.cpu)
	}
	if w.stamp.main {
		t.census(w)
		w.stamp.census = nanotime() - w.stamp.window
		w.note(kcdata.TraceCensus, uint64(t.seenTasks))
	}
	if w.works {
		w.drain(t)
	}
	if h := w.team.hooks.recorded; h != nil {
		h(w.cpu)
	}
	w.stamp.drained = nanotime()
	w.note(kcdata.TraceDrained, t.state.word.Load())
	t.state.finish()
	by := t.pauseBy.Load()
	t.await(phaseCommitted, by)
	w.stamp.checked = nanotime()
	if w.stamp.main {
		t.recount(by)
		w.note(kcdata.TraceVerified, uint64(t.recounted))
	}
	w.stamp.verified = nanotime()
	if !w.stamp.main {
		t.await(phaseDrained, by)
	}
	w.stamp.released = nanotime()
	atomic.StoreUint32(&w.slotMem().Left, 1)
	t.state.release()
	w.note(kcdata.TraceReleased, t.state.word.Load())
}

// await spins while the try stands at p, at most until by.
func (t *try) await(p phase, by int64) {
	for t.state.phase() == p && nanotime() < by {
	}
}

// drain takes items until there are none, the pause is spent, or the memory.
func (w *worker) drain(t *try) {
	by := t.pauseBy.Load()
	for {
		it, status := t.mem.queue.Next(w.slot, w.kind, t.stopTaking, by)
		if status != workqueue.Got {
			return
		}
		w.record(t, it, by)
	}
}

// record reads one item's KCData, made in BPF, straight into the chain.
func (w *worker) record(t *try, it workqueue.Item, by int64) {
	slot := w.slotMem()
	atomic.StoreUint32(&slot.Begun, 0)
	atomic.StoreUint32(&slot.Done, 0)
	atomic.StoreUint32(&slot.Threads, 0)
	from, before := w.chain.Mark(), w.chain.Len()
	w.note(kcdata.TraceItem, uint64(it.Index))
	var spent cost
	reason, errno := w.read(t, it, by, &spent)
	w.note(kcdata.TraceItemEnd, uint64(it.Index)<<32|uint64(reason))
	if reason == 0 && w.chain.Len() > before {
		w.parts = append(w.parts, part{it, from, w.chain.Mark(), atomic.LoadUint32(&slot.Threads), spent})
		return
	}
	if reason == 0 {
		reason = kcdata.LeftOutVanished // nothing was shown: it is gone
	}
	w.chain.Rewind(from)
	w.failed = append(w.failed, failure{it, reason, errno})
	if reason == kcdata.LeftOutNoSpace {
		w.note(kcdata.TraceNoSpace, uint64(it.Index))
		t.state.noSpace()
	}
}

// read iterates over the item's task. (0, 0): all of it is in the chain.
func (w *worker) read(t *try, it workqueue.Item, by int64, spent *cost) (reason uint32, errno unix.Errno) {
	var pass bpf.Iterator
	prog, scope := t.program(it)
	clock := t.clock()
	errno = pass.Open(prog, &scope)
	spent.setup = t.since(&clock)
	if errno != 0 {
		if errno == unix.ESRCH {
			return kcdata.LeftOutVanished, errno
		}
		return kcdata.LeftOutError, errno
	}
	reason, errno = w.readOpen(t, &pass, by)
	spent.threads = t.since(&clock)
	pass.Close()
	spent.end = t.since(&clock)
	return reason, errno
}

// readOpen reads an open iterator to its end.
func (w *worker) readOpen(t *try, pass *bpf.Iterator, by int64) (reason uint32, errno unix.Errno) {
	slot := w.slotMem()
	for {
		room := w.chain.Room()
		if room == nil {
			return kcdata.LeftOutNoSpace, unix.ENOSPC
		}
		n, errno := pass.Read(room)
		if errno != 0 {
			return kcdata.LeftOutError, errno
		}
		w.chain.Advance(n)
		if n == 0 || n < len(room) && atomic.LoadUint32(&slot.Done) != 0 {
			break
		}
		if nanotime() >= by {
			return kcdata.LeftOutMaxPause, 0
		}
	}
	if atomic.LoadUint32(&slot.Begun) != atomic.LoadUint32(&slot.Done) {
		return kcdata.LeftOutError, unix.EIO
	}
	return 0, 0
}
