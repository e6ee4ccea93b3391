package snapshot

import (
	"sync/atomic"

	"golang.org/x/sys/unix"

	"stackshot/internal/bpf"
	"stackshot/kcdata"
	"stackshot/workqueue"
)

// This file runs in the window: rule 1 holds.

// hold is the stop as engine pull does it: the worker's thread keeps the CPU.
func (t *pullTry) hold(w *worker) {
	before := w.switched()
	if w.arrive() {
		w.stamp.in = true
		t.inWindow(w)
	}
	w.stamp.switches = uint32(w.switched() - before)
	w.stamp.left = nanotime()
	w.stamp.in = !w.elsewhere() && w.stamp.in
}

// unheld: who arrives holds its CPU.
func (t *pullTry) unheld() string { return "" }

func (t *pullTry) inWindow(w *worker) {
	w.stamp.window = nanotime()
	w.stamp.decided = w.stamp.window
	w.note(kcdata.TraceDecided, t.state.word.Load())
	if h := w.gate.hooks.inWindow; h != nil {
		h(w.cpu)
	}
	if w.stamp.main {
		t.census(w)
		w.stamp.census = nanotime() - w.stamp.window
		w.note(kcdata.TraceCensus, uint64(t.seenTasks))
	}
	if w.works {
		t.drain(w)
	}
	if h := w.gate.hooks.recorded; h != nil {
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

// drain takes items until there are none, the pause is spent, or the memory.
func (t *pullTry) drain(w *worker) {
	by := t.pauseBy.Load()
	for {
		it, status := t.mem.queue.Next(w.slot, w.kind, t.stopTaking, by)
		if status != workqueue.Got {
			return
		}
		t.record(w, it, by)
	}
}

// record reads one item's KCData, made in BPF, straight into the chain.
func (t *pullTry) record(w *worker, it workqueue.Item, by int64) {
	slot, r := w.slotMem(), t.recordings[w.slot]
	atomic.StoreUint32(&slot.Begun, 0)
	atomic.StoreUint32(&slot.Done, 0)
	atomic.StoreUint32(&slot.Threads, 0)
	from, before := r.chain.Mark(), r.chain.Len()
	w.note(kcdata.TraceItem, uint64(it.Index))
	var spent cost
	reason, errno := t.read(w, it, by, &spent)
	w.note(kcdata.TraceItemEnd, uint64(it.Index)<<32|uint64(reason))
	if reason == 0 && r.chain.Len() > before {
		r.keep(it, from, atomic.LoadUint32(&slot.Threads), spent)
		return
	}
	if reason == 0 {
		reason = kcdata.LeftOutVanished // nothing was shown: it is gone
	}
	r.fail(it, from, reason, errno)
	if reason == kcdata.LeftOutNoSpace {
		w.note(kcdata.TraceNoSpace, uint64(it.Index))
		t.state.noSpace()
	}
}

// read iterates over the item's task. (0, 0): all of it is in the chain.
func (t *pullTry) read(w *worker, it workqueue.Item, by int64, spent *cost) (reason uint32, errno unix.Errno) {
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
	reason, errno = t.readOpen(w, &pass, by)
	spent.threads = t.since(&clock)
	pass.Close()
	spent.end = t.since(&clock)
	return reason, errno
}

// readOpen reads an open iterator to its end.
func (t *pullTry) readOpen(w *worker, pass *bpf.Iterator, by int64) (reason uint32, errno unix.Errno) {
	slot, chain := w.slotMem(), t.recordings[w.slot].chain
	for {
		room := chain.Room()
		if room == nil {
			return kcdata.LeftOutNoSpace, unix.ENOSPC
		}
		n, errno := pass.Read(room)
		if errno != 0 {
			return kcdata.LeftOutError, errno
		}
		chain.Advance(n)
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

// clock starts the timing of an item; 0 where nothing is timed.
func (t *pullTry) clock() int64 {
	if t.latency == 0 {
		return 0
	}
	return nanotime()
}

// since gives the time since the clock was last read, and reads it.
func (t *pullTry) since(clock *int64) int64 {
	was := *clock
	*clock = t.clock()
	return *clock - was
}
