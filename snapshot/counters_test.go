package snapshot

import (
	"errors"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The way of reading, on two events that every machine has.
func TestCountersOfAGroup(t *testing.T) {
	requireBPF(t)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	c, err := openGroup(unix.Gettid(), unix.PERF_TYPE_SOFTWARE, unix.PERF_COUNT_SW_TASK_CLOCK, unix.PERF_COUNT_SW_CONTEXT_SWITCHES)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	const spun = 3 * time.Millisecond
	c.begin()
	for end := nanotime() + int64(spun); nanotime() < end; {
	}
	nap(time.Millisecond)
	got := c.end()
	for n := 0; n < 20 && got.instrs == 0; n++ { // counting begins when the kernel has told every CPU
		nap(time.Millisecond)
		got = c.end()
	}
	if !got.has || got.cycles == 0 || got.instrs == 0 || got.instrs > 1000 {
		t.Errorf("%+v after %v of work and a nap", got, spun)
	}
	if again := c.end(); again.cycles <= got.cycles {
		t.Errorf("%d ns, later %d", got.cycles, again.cycles)
	}
	if n := testing.AllocsPerRun(100, func() { c.begin(); c.end() }); n != 0 {
		t.Errorf("reading allocates %v times", n)
	}
}

// Where the machine has no PMU the workers have no counts, and that is all.
func TestCountersOfWorkers(t *testing.T) {
	s := openTest(t, Options{ArrivalBudget: time.Second}, hooks{})
	probe, err := openCounters(unix.Getpid())
	probe.close()
	if err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.EOPNOTSUPP) && !errors.Is(err, unix.ENODEV) {
		t.Errorf("no counters: %v", err)
	}
	s.mustTake(t)
	for _, w := range s.team.workers {
		switch {
		case (w.perf == nil) != (err != nil):
			t.Errorf("CPU %d: counters %v, this thread's: %v", w.cpu, w.perf, err)
		case w.perf == nil && w.cost != (perfCost{}):
			t.Errorf("CPU %d: counted %+v without a PMU", w.cpu, w.cost)
		case w.cost.has && (w.cost.cycles == 0 || w.cost.instrs == 0):
			t.Errorf("CPU %d: %+v", w.cpu, w.cost)
		}
	}
}
