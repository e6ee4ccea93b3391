//go:build linux && (amd64 || arm64)

package testtask

import (
	"fmt"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"stackshot/internal/testneed"
)

// Storm says how hard a storm blows. Zero fields take the stated default.
type Storm struct {
	Workers  int           // processes that make others, 1 to 8; 2
	Threads  int           // threads that each made process makes; 4
	Interval time.Duration // of a worker between two processes; 2 ms
	Life     time.Duration // of each made thread and process; 1 ms
}

// A StormFixture is a storm that blows until Stop or the test's cleanup.
type StormFixture struct {
	*Fixture
	workers int
}

// SpawnExitStorm starts a tree of processes that all the time make and end
// processes and threads, at a bounded rate.
func SpawnExitStorm(tb testing.TB, s Storm) *StormFixture {
	tb.Helper()
	testneed.OnlyLab(tb, "a storm")
	s = s.withDefaults()
	if s.Workers < 1 || s.Workers > len(boardHead{}.procs) || s.Threads < 0 || s.Threads > 1000 || s.Interval < 0 || s.Life < 0 || s.Life > time.Second {
		tb.Fatalf("testtask: storm out of range: %+v", s)
	}
	f := Start(tb, Kind{Name: exitStorm.Name, N: s.Workers, Threads: s.Threads, Life: s.Life, Every: s.Interval})
	return &StormFixture{Fixture: f, workers: s.Workers}
}

func (s Storm) withDefaults() Storm {
	if s.Workers == 0 {
		s.Workers = 2
	}
	if s.Threads == 0 {
		s.Threads = 4
	}
	if s.Interval == 0 {
		s.Interval = 2 * time.Millisecond
	}
	if s.Life == 0 {
		s.Life = time.Millisecond
	}
	return s
}

// Made is how many processes have come and gone, and threads been made, since
// the start. Not to be called after the cleanup.
func (f *StormFixture) Made() (procs, threads uint64) {
	for i := range f.workers {
		procs += atomic.LoadUint64(&f.board.head.procs[i])
		threads += atomic.LoadUint64(&f.board.head.threads[i])
	}
	return procs, threads
}

// Stop ends the storm and waits until the last process it made is reaped.
func (f *StormFixture) Stop() { f.Close() }

// A storm is one worker's orders, read by it alone.
type storm struct {
	head    *boardHead
	index   int // of the worker, in head.procs and head.threads
	threads uintptr
	life    *unix.Timespec
	every   *unix.Timespec
	nap     *step // what a thread does before it exits
}

func (s *stage) stormSteps() ([]step, error) {
	if s.stormed >= len(s.board.head.procs) {
		return nil, fmt.Errorf("storm of more than %d workers", s.stormed)
	}
	life, every := timespec(s.kind.Life), timespec(s.kind.Every)
	nap := &step{nr: unix.SYS_CLOCK_NANOSLEEP, arg: args{unix.CLOCK_MONOTONIC, 0, addr(life)}, once: 1}
	w := &storm{head: s.board.head, index: s.stormed, threads: uintptr(s.kind.Threads), life: life, every: every, nap: nap}
	s.stormed++
	return []step{{nr: opStorm, storm: w, must: true}}, nil
}

func timespec(d time.Duration) *unix.Timespec {
	ts := unix.NsecToTimespec(int64(d))
	return &ts
}

// run makes one process at a time, and reaps it, until told to stop. It stops
// between two, so that no process outlives the worker that must reap it.
//
//go:nosplit
//go:norace
func (w *storm) run() syscall.Errno {
	for w.head.stop == 0 {
		pid, _, errno := syscall.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
		if errno != 0 {
			return errno
		}
		if pid == 0 {
			w.child()
		}
		syscall.RawSyscall6(unix.SYS_WAIT4, pid, 0, 0, 0, 0, 0)
		w.head.procs[w.index]++
		w.sleep(w.every)
	}
	return 0
}

//go:nosplit
//go:norace
func (w *storm) child() {
	if _, errno := startThreads(w.nap, w.threads); errno == 0 {
		w.head.threads[w.index] += uint64(w.threads)
	}
	w.sleep(w.life)
	exitGroup(0)
}

//go:nosplit
//go:norace
func (w *storm) sleep(ts *unix.Timespec) {
	syscall.RawSyscall6(unix.SYS_CLOCK_NANOSLEEP, unix.CLOCK_MONOTONIC, 0, uintptr(unsafe.Pointer(ts)), 0, 0, 0)
}
