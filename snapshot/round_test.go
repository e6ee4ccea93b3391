package snapshot

import (
	"context"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"stackshot/internal/clock"
	"stackshot/internal/engine"
	"stackshot/internal/engine/stop"
	"stackshot/internal/testneed"

	"golang.org/x/sys/unix"
)

// A worker that a cpuset or CPU hotplug moved does not count for the CPU it was to
// stop: that one ran on. Without SCHED_FIFO both come to the same CPU in turn.
func TestInvariant3MovedWorkerDoesNotCount(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	requireTwoCPUs(t)
	move := -1
	s := openTest(t, Options{}, engine.Hooks{NoFIFO: true, BeforeArrival: func(cpu int) {
		if cpu == move {
			var elsewhere unix.CPUSet
			elsewhere.Set(0)
			unix.SchedSetaffinity(0, &elsewhere)
		}
	}})
	s.mustTake(t)
	move = 1
	despiteTheHost(t, func() error {
		r, snap, err := s.takeParsed()
		if err != nil {
			return err
		}
		if slices.Contains(r.CPUs.Stopped, move) || !slices.Contains(r.CPUs.Missing, move) {
			t.Errorf("CPU 1 ran on: %+v", r.CPUs)
		}
		if !hasWarning(r, "worker_moved") || !hasCode(snap, "worker_moved") {
			t.Errorf("nobody says that the worker had been moved: %v", r.Warnings)
		}
		return nil
	})
	move = -1
	if r, _, _ := captureWhole(t, s, Request{}); !slices.Contains(r.CPUs.Stopped, 1) {
		t.Errorf("the worker is back: %+v", r.CPUs)
	}
}

// What a context sets off is over when the capture is, and a coordinator that its
// main worker is about to move is moved back after it.
func TestInvariant8NothingComesAfterTheTake(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	testneed.Slow(t)
	requireTwoCPUs(t)
	forEngines(t, func(t *testing.T, engineName string) {
		var under, fetched, ended atomic.Bool
		ctx, cancel := contextFor(t)
		h := engine.Hooks{
			BeforeArrival: func(cpu int) {
				if cpu == 1 && under.Load() { // main goes on without it, and brings the coordinator
					cancel()
					for until := clock.Nanotime() + int64(300*time.Millisecond); clock.Nanotime() < until; {
					}
				}
			},
			Fetching:  func() { clock.Nap(700 * time.Millisecond); fetched.Store(true) },
			Cancelled: func() { clock.Nap(900 * time.Millisecond); ended.Store(true) },
		}
		s := openTest(t, Options{Engine: engineName, ArrivalBudget: 5 * time.Millisecond, MaxPause: 30 * time.Millisecond}, h)
		lockThread(t)
		var home, after unix.CPUSet
		unix.SchedGetaffinity(0, &home)
		for range 5 {
			under.Store(true)
			s.Take(ctx, Request{})
			if fetched.Load() && ended.Load() {
				break
			}
			ctx, cancel = contextFor(t)
		}
		unix.SchedGetaffinity(0, &after)
		if !fetched.Load() || !ended.Load() {
			t.Errorf("main has moved the coordinator: %v, the context's doing is over: %v", fetched.Load(), ended.Load())
		}
		if home != after {
			t.Errorf("this thread may run on %v, before on %v", after, home)
		}
	})
}

func contextFor(t *testing.T) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	return ctx, cancel
}

func lockThread(t *testing.T) {
	runtime.LockOSThread()
	t.Cleanup(runtime.UnlockOSThread)
}

// Engine pull: a worker that is moved inside the window leaves its CPU running, and
// that CPU is not called stopped.
func TestInvariant3WorkerMovedInTheWindow(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	requireTwoCPUs(t)
	var move atomic.Bool
	s := openTest(t, Options{MaxPause: slow(60 * time.Millisecond)}, engine.Hooks{InWindow: func(cpu int) {
		if cpu == 1 && move.Load() {
			var elsewhere unix.CPUSet
			elsewhere.Set(0)
			unix.SchedSetaffinity(0, &elsewhere)
		}
	}})
	move.Store(true)
	r, snap := s.mustTake(t)
	if slices.Contains(r.CPUs.Stopped, 1) || !slices.Contains(r.CPUs.Missing, 1) || !hasCode(snap, "worker_moved") || r.StopBroken == 0 {
		t.Errorf("CPU 1 was let go in the window: %+v, broken %d, %v", r.CPUs, r.StopBroken, r.Warnings)
	}
	move.Store(false)
	if r, _, _ := captureWhole(t, s, Request{}); !slices.Contains(r.CPUs.Stopped, 1) {
		t.Errorf("the worker is back: %+v", r.CPUs)
	}
}

// A worker that may not run on its CPU is not called: the CPU is missed for that
// reason, and not for what runs there.
func TestWorkerRefusedItsCPU(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	testneed.Slow(t)
	requireTwoCPUs(t)
	forEngines(t, func(t *testing.T, engineName string) {
		s := openTest(t, Options{Engine: engineName}, engine.Hooks{})
		w := stop.WorkerOf(s.team.Workers, 1)
		tid := w.Tid
		w.Tid = 1 << 23 // beyond PID_MAX_LIMIT: sched_setaffinity refuses it
		r, snap := s.mustTake(t)
		w.Tid = tid
		if !slices.Contains(r.CPUs.Missing, 1) || !hasCode(snap, "worker_moved") || hasCode(snap, "cpu_missed") {
			t.Errorf("%+v, %v", r.CPUs, r.Warnings)
		}
		if r, _, _ := captureWhole(t, s, Request{}); len(r.Warnings) > 0 && hasWarning(r, "worker_moved") {
			t.Errorf("it may again: %v", r.Warnings)
		}
	})
}
