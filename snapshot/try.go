package snapshot

import (
	"fmt"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"stackshot/internal/bpf"
)

// A try is one stop of the machine. Fields of the first group are set before
// the wake and constant from then on; state is everybody's (state.go).
type try struct {
	number        uint64    // of its team's tries
	here          []*worker // who takes part, the main one first
	recorder      recorder
	slots         bpf.Slots
	arrivalBudget int64            // ns
	pauseBudget   int64            // ns
	settle        int64            // ns
	missed        func(cpus []int) // job's

	shut        bool         // coordinator's: the try ended before its gate was open
	coordinator atomic.Int32 // its thread, for as long as main may move it; coordinatorMoves while main does; 0 after

	*stopWords
}

// recorder is an engine's part in a try.
type recorder interface {
	// hold is a worker's whole part in the window, on its own thread and CPU: rule 1
	// holds there. It returns when the machine is released, or when the worker is no
	// part of the stop.
	hold(w *worker)
	// unheld names a CPU that was counted in and kept the stop from being made. "":
	// there is none.
	unheld() string
}

// stopWords is what the workers share; its layout is the first line of struct
// stop (internal/bpf/trap.h), and where the kernel's side records it lies there.
type stopWords struct {
	state    stopState
	arriveBy atomic.Int64 // CLOCK_MONOTONIC ns, written before the gate opens
	pauseBy  atomic.Int64
}

// newTry is a try of the workers that are here, the main one first. words lie where
// the engine's programs find them.
func (m *team) newTry(j job, here []*worker, words *stopWords, r recorder) *try {
	t := &try{
		number: m.gate.begin(), here: here, recorder: r, slots: m.objects.Slots, stopWords: words, missed: j.missed,
		arrivalBudget: int64(min(m.arrivalBudget, j.pause)), pauseBudget: int64(j.pause), settle: int64(j.settle), // who waits is held
	}
	clear(m.objects.Slots)
	for _, w := range here {
		m.objects.Slots[w.cpu].WorkerTid = uint32(w.tid)
		w.assign(t)
	}
	m.objects.Control.BootEpochNs = bootEpoch()
	return t
}

// onlyMissing reports whether all who took part have left, so that of the rest
// nobody is waited for but those that did not come.
func (t *try) onlyMissing(left int) bool {
	w := t.state.word.Load()
	return phaseOf(w) == phaseReleased && uint64(left) <= t.state.want-arrivedOf(w)
}

// fetchCoordinator brings the coordinator to the CPU of the main worker, which
// calls it when a CPU has not come: there it may sit behind the very task that
// keeps that CPU, and then what it asks would be answered a second too late.
func (t *try) fetchCoordinator(w *worker) {
	word, tid := t.state.word.Load(), t.coordinator.Load()
	if p := phaseOf(word); p == phaseIdle || p == phaseArriving || p == phaseAborted || arrivedOf(word) == t.state.want {
		return
	}
	if tid <= 0 || !t.coordinator.CompareAndSwap(tid, coordinatorMoves) {
		return
	}
	if h := w.gate.hooks.fetching; h != nil {
		h()
	}
	var set unix.CPUSet
	set.Set(w.cpu)
	unix.RawSyscall(unix.SYS_SCHED_SETAFFINITY, uintptr(tid), unsafe.Sizeof(set), uintptr(unsafe.Pointer(&set)))
	t.coordinator.Store(0)
}

const coordinatorMoves = -1

// returnCoordinator takes this thread back to its own CPUs, from where the main
// worker may have brought it, and for good: main does not move it any more. A
// thread left where main put it would hand that CPU down to the threads it makes.
func (t *try) returnCoordinator(home *unix.CPUSet) {
	deadline := time.Now().Add(time.Second) // main is in one system call, at FIFO 99
	for t.coordinator.Load() != 0 && time.Now().Before(deadline) {
		if tid := t.coordinator.Load(); tid > 0 && t.coordinator.CompareAndSwap(tid, 0) {
			break
		}
		nap(10 * time.Microsecond)
	}
	unix.SchedSetaffinity(0, home)
}

// owing are those that were woken and are not through with this try. Until the
// main worker has opened the gate, only it was.
func (t *try) owing() (out []*worker) {
	for _, w := range t.notThrough(t.here) {
		if !t.shut || w == t.here[0] {
			out = append(out, w)
		}
	}
	return out
}

func (t *try) notThrough(workers []*worker) (out []*worker) {
	for _, w := range workers {
		if w.through.Load() != t.number {
			out = append(out, w)
		}
	}
	return out
}

// noteLate marks who was woken and did not come: it does not lead the next.
func (t *try) noteLate() {
	for i, w := range t.here {
		w.late = (!t.shut || i == 0) && (w.away || w.stamp.arrived == 0)
	}
}

// whyElsewhere says why this worker did not hold its CPU though nothing on that CPU
// kept it away; "": it did, or something did.
func (w *worker) whyElsewhere() string {
	switch {
	case w.refused != nil:
		return fmt.Sprintf("our thread may not run there (a cpuset?): %v", w.refused)
	case !w.away && !w.freed && w.stamp.on != w.cpu:
		return fmt.Sprintf("our thread for it had been moved to CPU %d (a cpuset, or CPU hotplug)", w.stamp.on)
	}
	return ""
}
