package snapshot

import (
	"errors"
	"runtime"
	"testing"
	"time"

	"stackshot/internal/clock"
	"stackshot/internal/engine"
	"stackshot/internal/engine/stop"

	"golang.org/x/sys/unix"
)

// The way of reading, on two events that every machine has.
func TestCountersOfAGroup(t *testing.T) {
	requireBPF(t)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	c, err := stop.OpenGroup(unix.Gettid(), unix.PERF_TYPE_SOFTWARE, unix.PERF_COUNT_SW_TASK_CLOCK, unix.PERF_COUNT_SW_CONTEXT_SWITCHES)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	const spun = 3 * time.Millisecond
	c.Begin()
	for end := clock.Nanotime() + int64(spun); clock.Nanotime() < end; {
	}
	clock.Nap(time.Millisecond)
	got := c.End()
	for n := 0; n < 20 && got.Instrs == 0; n++ { // counting begins when the kernel has told every CPU
		clock.Nap(time.Millisecond)
		got = c.End()
	}
	if !got.Has || got.Cycles == 0 || got.Instrs == 0 || got.Instrs > 1000 {
		t.Errorf("%+v after %v of work and a nap", got, spun)
	}
	if again := c.End(); again.Cycles <= got.Cycles {
		t.Errorf("%d ns, later %d", got.Cycles, again.Cycles)
	}
	if n := testing.AllocsPerRun(100, func() { c.Begin(); c.End() }); n != 0 {
		t.Errorf("reading allocates %v times", n)
	}
}

// Where the machine has no PMU the workers have no counts, and that is all.
func TestCountersOfWorkers(t *testing.T) {
	s := openTest(t, Options{ArrivalBudget: time.Second}, engine.Hooks{})
	probe, err := stop.OpenCounters(unix.Getpid())
	probe.Close()
	if err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.EOPNOTSUPP) && !errors.Is(err, unix.ENODEV) {
		t.Errorf("no counters: %v", err)
	}
	s.mustTake(t)
	for _, w := range s.team.Workers {
		switch {
		case (w.Perf == nil) != (err != nil):
			t.Errorf("CPU %d: counters %v, this thread's: %v", w.CPU, w.Perf, err)
		case w.Perf == nil && w.Cost != (stop.PerfCost{}):
			t.Errorf("CPU %d: counted %+v without a PMU", w.CPU, w.Cost)
		case w.Cost.Has && (w.Cost.Cycles == 0 || w.Cost.Instrs == 0):
			t.Errorf("CPU %d: %+v", w.CPU, w.Cost)
		}
	}
}
