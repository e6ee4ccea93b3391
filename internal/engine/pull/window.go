package pull

import (
	"sync/atomic"

	"golang.org/x/sys/unix"

	"stackshot/internal/bpf"
	"stackshot/internal/capture"
	"stackshot/internal/clock"
	"stackshot/internal/engine/stop"
	"stackshot/kcdata"
	"stackshot/workqueue"
)

// This file runs in the window: invariant 1 of snapshot/doc.go holds.

// Hold holds the worker's CPU by its thread's priority alone.
func (t *try) Hold(w *stop.Worker) {
	before := w.Switched()
	if w.Arrive() {
		w.Stamp.In = true
		t.inWindow(w)
	}
	w.Stamp.Switches = uint32(w.Switched() - before)
	w.Stamp.Left = clock.Nanotime()
	w.Stamp.In = !w.Elsewhere() && w.Stamp.In
}

// Unheld is always "": a worker that arrives holds its CPU.
func (t *try) Unheld() string { return "" }

func (t *try) inWindow(w *stop.Worker) {
	w.Stamp.Window = clock.Nanotime()
	w.Stamp.Decided = w.Stamp.Window
	w.Note(kcdata.TraceDecided, t.State.Word.Load())
	if h := w.Gate.Hooks.InWindow; h != nil {
		h(w.CPU)
	}
	if w.Stamp.Main {
		t.census(w)
		w.Stamp.Census = clock.Nanotime() - w.Stamp.Window
		w.Note(kcdata.TraceCensus, uint64(t.seenTasks))
	}
	if w.Works {
		t.drain(w)
	}
	if h := w.Gate.Hooks.Recorded; h != nil {
		h(w.CPU)
	}
	w.Stamp.Drained = clock.Nanotime()
	w.Note(kcdata.TraceDrained, t.State.Word.Load())
	t.State.Finish()
	by := t.PauseBy.Load()
	t.Await(stop.PhaseCommitted, by)
	w.Stamp.Checked = clock.Nanotime()
	if w.Stamp.Main {
		t.secondPass(by)
		w.Note(kcdata.TraceVerified, uint64(t.secondLen))
	}
	w.Stamp.Verified = clock.Nanotime()
	if !w.Stamp.Main {
		t.Await(stop.PhaseDrained, by)
	}
	w.Stamp.Released = clock.Nanotime()
	atomic.StoreUint32(&w.SlotMem().Left, 1)
	t.State.Release()
	w.Note(kcdata.TraceReleased, t.State.Word.Load())
}

// drain takes and records items until there are none, or the pause or the memory is
// used up.
func (t *try) drain(w *stop.Worker) {
	by := t.PauseBy.Load()
	for {
		it, status := t.mem.Queue.Next(w.Slot, w.Kind, t.stopTaking, by)
		if status != workqueue.Got {
			return
		}
		t.Record(w, it, by)
	}
}

// Record reads one item's KCData, made in BPF, straight into the chain.
func (t *try) Record(w *stop.Worker, it workqueue.Item, by int64) {
	slot, r := w.SlotMem(), t.recordings[w.Slot]
	atomic.StoreUint32(&slot.Begun, 0)
	atomic.StoreUint32(&slot.Done, 0)
	atomic.StoreUint32(&slot.Threads, 0)
	from, before := r.Chain.Mark(), r.Chain.Len()
	w.Note(kcdata.TraceItem, uint64(it.Index))
	var spent capture.Cost
	reason, errno := t.read(w, it, by, &spent)
	w.Note(kcdata.TraceItemEnd, uint64(it.Index)<<32|uint64(reason))
	if reason == 0 && r.Chain.Len() > before {
		r.Keep(it, from, atomic.LoadUint32(&slot.Threads), spent)
		return
	}
	if reason == 0 {
		reason = kcdata.LeftOutVanished // nothing was shown: it is gone
	}
	r.Fail(it, from, reason, errno)
	if reason == kcdata.LeftOutNoSpace {
		w.Note(kcdata.TraceNoSpace, uint64(it.Index))
		t.State.NoSpace()
	}
}

// read iterates over the item's task. (0, 0): all of it is in the chain.
func (t *try) read(w *stop.Worker, it workqueue.Item, by int64, spent *capture.Cost) (reason uint32, errno unix.Errno) {
	var pass bpf.Iterator
	prog, scope := t.program(it)
	clock := t.clock()
	errno = pass.Open(prog, &scope)
	spent.Setup = t.since(&clock)
	if errno != 0 {
		if errno == unix.ESRCH {
			return kcdata.LeftOutVanished, errno
		}
		return kcdata.LeftOutError, errno
	}
	reason, errno = t.readOpen(w, &pass, by)
	spent.Threads = t.since(&clock)
	pass.Close()
	spent.End = t.since(&clock)
	return reason, errno
}

// readOpen reads an open iterator to its end.
func (t *try) readOpen(w *stop.Worker, pass *bpf.Iterator, by int64) (reason uint32, errno unix.Errno) {
	slot, chain := w.SlotMem(), t.recordings[w.Slot].Chain
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
		if clock.Nanotime() >= by {
			return kcdata.LeftOutMaxPause, 0
		}
	}
	if atomic.LoadUint32(&slot.Begun) != atomic.LoadUint32(&slot.Done) {
		return kcdata.LeftOutError, unix.EIO
	}
	return 0, 0
}

// clock starts the timing of an item; 0 where nothing is timed.
func (t *try) clock() int64 {
	if t.latency == 0 {
		return 0
	}
	return clock.Nanotime()
}

// since gives the time since the clock was last read, and reads it.
func (t *try) since(clock *int64) int64 {
	was := *clock
	*clock = t.clock()
	return *clock - was
}
