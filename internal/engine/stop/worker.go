package stop

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"stackshot/internal/bpf"
	"stackshot/internal/engine"
	"stackshot/workqueue"
)

// Worker is one goroutine on one OS thread, pinned to one CPU at SCHED_FIFO
// 99 where that is granted. It is made, pinned and parked in Open, long before
// any stop: a thread that is still being made cannot arrive in time.
//
// Fields of the first group are constant once ready is closed. Those of the
// second belong to the coordinator while the worker is parked, and to the
// worker from its wake until it has said done.
type Worker struct {
	CPU     int
	Slot    int // index among the session's workers
	Kind    workqueue.Kind
	Cluster int
	Tid     int
	fifo    error // why SCHED_FIFO was refused
	wake    int   // eventfd: wakes this worker as main
	bell    int   // epoll: wake, and each write to the gate
	ready   chan struct{}
	Gate    *Gate
	perf    *counters // nil: no PMU

	Try   *Try
	trace traceRing
	Stamp stamps
	usage unix.Rusage
	cost  perfCost     // of the last turn
	Did   engine.Tally // coordinator's, after done: what it recorded

	Called  atomic.Uint64 // number of the try it is to work on; by the coordinator
	Through atomic.Uint64 // number of the last try it is done with; by the worker
	Works   bool          // coordinator's: takes items in this try; else only holds its CPU still
	spared  bool          // coordinator's: is not to work because its CPU is throttled
	Away    bool          // coordinator's: did not come back to its park in time
	freed   bool          // coordinator's: was taken off its CPU by us in the last try, to come loose
	refused error         // coordinator's: why it may not run on its CPU
	late    bool          // coordinator's: missed the last stop, so it does not lead the next
}

// stamps of one turn, CLOCK_MONOTONIC ns; 0: did not get there.
type stamps struct {
	Taken   int64 // the worker runs: its CPU is taken from its work
	Arrived int64
	Decided int64 // the decision is seen
	Window  int64 // recording starts
	Census  int64 // duration
	Drained int64 // no more items
	Checked int64 // nobody has any: the second pass starts

	Verified int64
	Released int64 // about to let the others go; interrupts may run from here on
	Left     int64
	Main     bool
	In       bool // part of the committed stop
	on       int  // the CPU it was on when it was taken

	Switches uint32 // context switches while it should have held its CPU
}

// start makes the worker's thread and waits until it is ready to be parked.
func (w *Worker) start(fifo bool) error {
	var err error
	if w.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return fmt.Errorf("eventfd: %w", err)
	}
	if w.bell, err = newBell(w.wake, w.Gate.all); err != nil {
		unix.Close(w.wake)
		return err
	}
	w.ready = make(chan struct{})
	go w.loop(fifo)
	<-w.ready
	return nil
}

func (w *Worker) loop(fifo bool) {
	runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
	if unix.Gettid() == unix.Getpid() {
		// The process's first thread does not end with its goroutine, and would keep the
		// real-time priority. So another goroutine becomes the worker; this one keeps
		// its thread until that one has a thread of its own.
		go w.loop(fifo)
		<-w.ready
		runtime.UnlockOSThread()
		return
	}
	w.Tid = unix.Gettid()
	BlockPreemptionSignal()
	growStack(0)
	if fifo {
		w.fifo = w.Gate.setFIFO()
	}
	close(w.ready)
	for {
		number, main := w.park()
		if w.Gate.closing.Load() {
			return
		}
		w.turn(main)
		if main {
			w.Try.fetchCoordinator(w)
		}
		w.sayDone(number)
	}
}

// newBell is the epoll that a worker sleeps on. The gate is edge-triggered: a write
// wakes every worker once, and what was written keeps none awake.
func newBell(wake, gate int) (int, error) {
	bell, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("epoll: %w", err)
	}
	err = unix.EpollCtl(bell, unix.EPOLL_CTL_ADD, wake, &unix.EpollEvent{Events: unix.EPOLLIN})
	if err == nil {
		err = unix.EpollCtl(bell, unix.EPOLL_CTL_ADD, gate, &unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLET})
	}
	if err != nil {
		unix.Close(bell)
		return -1, fmt.Errorf("epoll: %w", err)
	}
	return bell, nil
}

// park waits until this worker is called to a try, and either woken as its main worker
// or let in by its gate. It returns the try's number. The number may change while the
// worker is parked: a try whose gate was never opened is over, and the next one calls.
// The Go runtime knows that this thread waits in a system call, so a parked worker
// does not delay a stop of Go's world.
func (w *Worker) park() (number uint64, main bool) {
	var events [2]unix.EpollEvent
	var b [8]byte
	for {
		if h := w.Gate.Hooks.Parked; h != nil {
			h(w.CPU)
		}
		woken, _ := unix.Read(w.wake, b[:])
		number = w.Called.Load()
		open, over := w.Gate.opened(number)
		switch {
		case w.Gate.closing.Load():
			return 0, false
		case number == w.Through.Load(): // not called
		case woken == 8 || open:
			return number, woken == 8
		case over:
			w.sayDone(number)
		}
		unix.EpollWait(w.bell, events[:], -1)
	}
}

func (w *Worker) sayDone(number uint64) {
	w.Through.Store(number)
	ring(w.Gate.done)
}

// ring wakes who waits for an eventfd.
func ring(fd int) {
	one := [8]byte{1}
	unix.Write(fd, one[:])
}

// pin puts the parked worker on its CPU, from the coordinator's thread: a
// thread that pins itself may have to wait for that CPU.
func (w *Worker) pin() error {
	var set unix.CPUSet
	set.Set(w.CPU)
	if err := unix.SchedSetaffinity(w.Tid, &set); err != nil {
		return fmt.Errorf("pin to CPU %d: %w", w.CPU, err)
	}
	return nil
}

// unpin lets a worker run on other CPUs if somebody's FIFO task keeps it off its own.
func (w *Worker) unpin(everywhere *unix.CPUSet) {
	unix.SchedSetaffinity(w.Tid, everywhere)
}

// assign prepares the parked worker for a try.
func (w *Worker) assign(t *Try) {
	w.Try = t
	w.Stamp = stamps{on: w.CPU}
	w.cost = perfCost{}
	w.Did = engine.Tally{}
	w.trace.reset()
	w.Called.Store(t.Number)
}

// heldCPU is from when to when this worker's CPU did not do its own work: from
// the scheduler's switch to it to the first switch away after the release, where
// the hook has seen them, else between its own first and last instructions.
func (w *Worker) heldCPU() (from, to int64) {
	slot := w.SlotMem()
	from, to = w.Stamp.Taken, w.Stamp.Left
	if at := int64(atomic.LoadUint64(&slot.StopNs)); at != 0 {
		from = min(from, at)
	}
	if at := int64(atomic.LoadUint64(&slot.GoneNs)); at != 0 {
		to = at
	}
	return from, to
}

// Switched is how often the scheduler took this thread off its CPU so far. It
// may be called in the window.
func (w *Worker) Switched() uint64 {
	unix.RawSyscall(unix.SYS_GETRUSAGE, unix.RUSAGE_THREAD, uintptr(unsafe.Pointer(&w.usage)), 0)
	return uint64(w.usage.Nvcsw + w.usage.Nivcsw)
}

// Recorder is the engine's part in the worker's try; nil: it has had none.
func (w *Worker) Recorder() Recorder {
	if w.Try == nil {
		return nil
	}
	return w.Try.recorder
}

func (w *Worker) SlotMem() *bpf.Slot { return &w.Try.slots[w.CPU] }
