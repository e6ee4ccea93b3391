package snapshot

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"stackshot/internal/bpf"
	"stackshot/workqueue"
)

// A worker is one goroutine on one OS thread, pinned to one CPU at SCHED_FIFO
// 99 where that is granted. It is made, pinned and parked in Open, long before
// any stop: a thread that is still being made cannot arrive in time.
//
// Fields of the first group are constant once ready is closed. Those of the
// second belong to the coordinator while the worker is parked, and to the
// worker from its wake until it has said done.
type worker struct {
	cpu     int
	slot    int // index among the session's workers
	kind    workqueue.Kind
	cluster int
	tid     int
	fifo    error // why SCHED_FIFO was refused
	wake    int   // eventfd: wakes this worker as main
	bell    int   // epoll: wake, and each write to the gate
	ready   chan struct{}
	gate    *gate
	perf    *counters // nil: no PMU

	try   *try
	trace traceRing
	stamp stamps
	usage unix.Rusage
	cost  perfCost // of the last turn
	did   tally    // coordinator's, after done: what it recorded

	called  atomic.Uint64 // number of the try it is to work on; by the coordinator
	through atomic.Uint64 // number of the last try it is done with; by the worker
	works   bool          // coordinator's: takes items in this try; else only holds its CPU still
	spared  bool          // coordinator's: is not to work because its CPU is throttled
	away    bool          // coordinator's: did not come back to its park in time
	freed   bool          // coordinator's: was taken off its CPU by us in the last try, to come loose
	refused error         // coordinator's: why it may not run on its CPU
	late    bool          // coordinator's: missed the last stop, so it does not lead the next
}

// stamps of one turn, CLOCK_MONOTONIC ns; 0: did not get there.
type stamps struct {
	taken   int64 // the worker runs: its CPU is taken from its work
	arrived int64
	decided int64 // the decision is seen
	window  int64 // recording starts
	census  int64 // duration
	drained int64 // no more items
	checked int64 // nobody has any: the second pass starts

	verified int64
	released int64 // about to let the others go; interrupts may run from here on
	left     int64
	main     bool
	in       bool // part of the committed stop
	on       int  // the CPU it was on when it was taken

	switches uint32 // context switches while it should have held its CPU
}

// start makes the worker's thread and waits until it is ready to be parked.
func (w *worker) start(fifo bool) error {
	var err error
	if w.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return fmt.Errorf("eventfd: %w", err)
	}
	if w.bell, err = newBell(w.wake, w.gate.all); err != nil {
		unix.Close(w.wake)
		return err
	}
	w.ready = make(chan struct{})
	go w.loop(fifo)
	<-w.ready
	return nil
}

func (w *worker) loop(fifo bool) {
	runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
	if unix.Gettid() == unix.Getpid() {
		// But the process's first thread would stay for good, real-time
		// priority and all. Keep it until another goroutine has another.
		go w.loop(fifo)
		<-w.ready
		runtime.UnlockOSThread()
		return
	}
	w.tid = unix.Gettid()
	blockPreemptionSignal()
	growStack(0)
	if fifo {
		w.fifo = w.gate.setFIFO()
	}
	close(w.ready)
	for {
		number, main := w.park()
		if w.gate.closing.Load() {
			return
		}
		w.turn(main)
		if main {
			w.try.fetchCoordinator(w)
		}
		w.sayDone(number)
	}
}

// newBell is what a worker sleeps on. The gate rings by its edge: a write wakes
// everybody once, and what was written keeps nobody awake.
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

// park waits until this worker is called to a try, and woken as its main or its
// gate open; it returns the try's number. What it is called to may change while it
// is parked: a try whose gate was never opened is over, and the next one calls. The
// wait is a system call that the Go runtime knows of, so that a parked worker keeps
// nobody from stopping Go's world.
func (w *worker) park() (number uint64, main bool) {
	var events [2]unix.EpollEvent
	var b [8]byte
	for {
		if h := w.gate.hooks.parked; h != nil {
			h(w.cpu)
		}
		woken, _ := unix.Read(w.wake, b[:])
		number = w.called.Load()
		open, over := w.gate.opened(number)
		switch {
		case w.gate.closing.Load():
			return 0, false
		case number == w.through.Load(): // not called
		case woken == 8 || open:
			return number, woken == 8
		case over:
			w.sayDone(number)
		}
		unix.EpollWait(w.bell, events[:], -1)
	}
}

func (w *worker) sayDone(number uint64) {
	w.through.Store(number)
	ring(w.gate.done)
}

// ring wakes who waits for an eventfd.
func ring(fd int) {
	one := [8]byte{1}
	unix.Write(fd, one[:])
}

// pin puts the parked worker on its CPU, from the coordinator's thread: a
// thread that pins itself may have to wait for that CPU.
func (w *worker) pin() error {
	var set unix.CPUSet
	set.Set(w.cpu)
	if err := unix.SchedSetaffinity(w.tid, &set); err != nil {
		return fmt.Errorf("pin to CPU %d: %w", w.cpu, err)
	}
	return nil
}

// unpin frees a worker that somebody's FIFO task keeps from running.
func (w *worker) unpin(everywhere *unix.CPUSet) {
	unix.SchedSetaffinity(w.tid, everywhere)
}

// assign prepares the parked worker for a try.
func (w *worker) assign(t *try) {
	w.try = t
	w.stamp = stamps{on: w.cpu}
	w.cost = perfCost{}
	w.did = tally{}
	w.trace.reset()
	w.called.Store(t.number)
}

// heldCPU is from when to when this worker's CPU did not do its own work: from
// the scheduler's switch to it to the first switch away after the release, where
// the hook has seen them, else between its own first and last instructions.
func (w *worker) heldCPU() (from, to int64) {
	slot := w.slotMem()
	from, to = w.stamp.taken, w.stamp.left
	if at := int64(atomic.LoadUint64(&slot.StopNs)); at != 0 {
		from = min(from, at)
	}
	if at := int64(atomic.LoadUint64(&slot.GoneNs)); at != 0 {
		to = at
	}
	return from, to
}

// switched is how often the scheduler took this thread off its CPU so far. It
// may be called in the window.
func (w *worker) switched() uint64 {
	unix.RawSyscall(unix.SYS_GETRUSAGE, unix.RUSAGE_THREAD, uintptr(unsafe.Pointer(&w.usage)), 0)
	return uint64(w.usage.Nvcsw + w.usage.Nivcsw)
}

// recorder is the engine's part in the worker's try; nil: it has had none.
func (w *worker) recorder() recorder {
	if w.try == nil {
		return nil
	}
	return w.try.recorder
}

func (w *worker) slotMem() *bpf.Slot { return &w.try.slots[w.cpu] }
