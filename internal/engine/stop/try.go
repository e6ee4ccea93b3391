package stop

import (
	"fmt"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"stackshot/internal/bpf"
	"stackshot/internal/clock"
	"stackshot/internal/engine"
)

// Try is one stop of the machine. Fields of the first group are set before
// the wake and constant from then on; Words are everybody's (state.go).
type Try struct {
	Number        uint64    // of its team's tries
	Here          []*Worker // who takes part, the main one first
	recorder      Recorder
	slots         bpf.Slots
	arrivalBudget int64            // ns
	pauseBudget   int64            // ns
	settle        int64            // ns
	missed        func(cpus []int) // Job.Missed

	shut        bool         // coordinator's: the try ended before its gate was open
	coordinator atomic.Int32 // its thread, for as long as main may move it; coordinatorMoves while main does; 0 after

	*Words
}

// Recorder is an engine's part in a try.
type Recorder interface {
	// Hold is a worker's whole part in the window, on its own thread and CPU.
	// Invariant 1 of snapshot/doc.go holds there. It returns when the machine is
	// released, or when the worker is no part of the stop.
	Hold(w *Worker)
	// Unheld names a CPU that was counted in and did not hold still in time, so that the
	// stop was aborted. "": there is none.
	Unheld() string
}

// Words is what the workers of a try share. It has the layout of the first four words
// of struct stop (internal/bpf/trap.h); under engine trap it lies in that struct.
type Words struct {
	State    State
	arriveBy atomic.Int64 // CLOCK_MONOTONIC ns, written before the gate opens
	PauseBy  atomic.Int64
}

// NewTry is a try of the workers that are here, the main one first. words must lie
// where the engine's programs find them.
func (m *Team) NewTry(j engine.Job, here []*Worker, words *Words, r Recorder) *Try {
	t := &Try{
		Number: m.Gate.begin(), Here: here, recorder: r, slots: m.Objects.Slots, Words: words, missed: j.Missed,
		arrivalBudget: int64(min(m.ArrivalBudget, j.Pause)), pauseBudget: int64(j.Pause), settle: int64(j.Settle), // who waits is held
	}
	clear(m.Objects.Slots)
	for _, w := range here {
		m.Objects.Slots[w.CPU].WorkerTid = uint32(w.Tid)
		w.assign(t)
	}
	m.Objects.Control.BootEpochNs = clock.BootEpoch()
	return t
}

// onlyMissing reports whether all workers that took part have left, so that only
// those that did not come are still waited for.
func (t *Try) onlyMissing(left int) bool {
	w := t.State.Word.Load()
	return PhaseOf(w) == PhaseReleased && uint64(left) <= t.State.Want-ArrivedOf(w)
}

// fetchCoordinator brings the coordinator to the CPU of the main worker, which
// calls it when a CPU has not come: there it may sit behind the very task that
// keeps that CPU, and then what it asks would be answered a second too late.
func (t *Try) fetchCoordinator(w *Worker) {
	word, tid := t.State.Word.Load(), t.coordinator.Load()
	if p := PhaseOf(word); p == PhaseIdle || p == PhaseArriving || p == PhaseAborted || p == PhasePanicked || ArrivedOf(word) == t.State.Want {
		return
	}
	if tid <= 0 || !t.coordinator.CompareAndSwap(tid, coordinatorMoves) {
		return
	}
	if h := w.Gate.Hooks.Fetching; h != nil {
		h()
	}
	var set unix.CPUSet
	set.Set(w.CPU)
	unix.RawSyscall(unix.SYS_SCHED_SETAFFINITY, uintptr(tid), unsafe.Sizeof(set), uintptr(unsafe.Pointer(&set)))
	t.coordinator.Store(0)
}

const coordinatorMoves = -1

// returnCoordinator lets this thread run on its own CPUs again, if the main worker has
// moved it, and keeps main from moving it any more. A thread left where main put it
// would hand that CPU down to the threads it makes.
func (t *Try) returnCoordinator(home *unix.CPUSet) {
	deadline := time.Now().Add(time.Second) // main is in one system call, at FIFO 99
	for t.coordinator.Load() != 0 && time.Now().Before(deadline) {
		if tid := t.coordinator.Load(); tid > 0 && t.coordinator.CompareAndSwap(tid, 0) {
			break
		}
		clock.Nap(10 * time.Microsecond)
	}
	unix.SchedSetaffinity(0, home)
}

// owing are the workers that were woken and are not through with this try. Until the
// main worker has opened the gate, only main was woken.
func (t *Try) owing() (out []*Worker) {
	for _, w := range t.notThrough(t.Here) {
		if !t.shut || w == t.Here[0] {
			out = append(out, w)
		}
	}
	return out
}

func (t *Try) notThrough(workers []*Worker) (out []*Worker) {
	for _, w := range workers {
		if w.Through.Load() != t.Number {
			out = append(out, w)
		}
	}
	return out
}

// noteLate marks the workers that were woken and did not come: they do not lead the
// next try.
func (t *Try) noteLate() {
	for i, w := range t.Here {
		w.late = (!t.shut || i == 0) && (w.Away || w.Stamp.Arrived == 0)
	}
}

// whyElsewhere says why this worker did not hold its CPU though nothing on that CPU
// kept it away; "": it did, or something did.
func (w *Worker) whyElsewhere() string {
	switch {
	case w.refused != nil:
		return fmt.Sprintf("our thread may not run there (a cpuset?): %v", w.refused)
	case !w.Away && !w.freed && w.Stamp.on != w.CPU:
		return fmt.Sprintf("our thread for it had been moved to CPU %d (a cpuset, or CPU hotplug)", w.Stamp.on)
	}
	return ""
}
