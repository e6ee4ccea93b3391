package snapshot

import (
	"cmp"
	"os"
	"strconv"
	"testing"
	"time"

	"stackshot/internal/testneed"
)

// timeFactor is how much longer than on a real machine things may take here, for
// tests under software emulation: STACKSHOT_TIME_FACTOR, 1 where it is not set.
var timeFactor = readTimeFactor()

func readTimeFactor() time.Duration {
	v, set := os.LookupEnv("STACKSHOT_TIME_FACTOR")
	if !set {
		return 1
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 {
		panic("STACKSHOT_TIME_FACTOR=" + v + ": want a whole number from 1 on")
	}
	return time.Duration(n)
}

// Emulation alone makes everything some times slower. What makes short budgets
// far too short is a CPU whose thread waits for a real one, for turns of some
// milliseconds that do not grow with the budget.
const (
	emulationFactor = 8
	waitForRealCPU  = time.Second
)

// slow is a test's own budget as this machine needs it: the factor times as
// long, but only as far as waiting for a real CPU can take, or emulation.
func slow(d time.Duration) time.Duration {
	return min(d*timeFactor, max(d*emulationFactor, waitForRealCPU))
}

// patient gives a test's options longer defaults: those that load does not reach, but in tier lab,
// and those of a slow machine.
func patient(tb testing.TB, o Options) Options {
	o.LockWait = cmp.Or(o.LockWait, testneed.Patience)
	arrival, pause, read := defaultArrivalBudget, time.Duration(defaultMaxPause), slow(defaultReadLimit)
	if !testneed.InLab(tb) {
		arrival, pause, read = time.Second, time.Second, 20*time.Second
	}
	if timeFactor > 1 || !testneed.InLab(tb) {
		o.ArrivalBudget = cmp.Or(o.ArrivalBudget, min(slow(arrival), maxArrivalBudget))
		o.MaxPause = cmp.Or(o.MaxPause, min(slow(pause), time.Minute))
		o.ReadLimit = cmp.Or(o.ReadLimit, read)
	}
	return o
}

// needsRealCPUs skips a test that holds a real machine's precision against the
// file: an emulated CPU is away without a trace of it.
func needsRealCPUs(tb testing.TB) {
	tb.Helper()
	if timeFactor > 1 {
		tb.Skipf("needs real CPUs: emulated (STACKSHOT_TIME_FACTOR=%d)", timeFactor)
	}
}

// A longer factor never shortens a budget, a budget is never shorter than on a
// real machine, and none becomes hours.
func TestSlow(t *testing.T) {
	was := timeFactor
	defer func() { timeFactor = was }()
	for _, d := range []time.Duration{0, time.Microsecond, 200 * time.Microsecond, 10 * time.Millisecond, time.Second, time.Minute} {
		last := time.Duration(0)
		for _, timeFactor = range []time.Duration{1, 2, 8, 50, 1000, 100_000} {
			got := slow(d)
			if got < d || got < last || got > max(emulationFactor*d, waitForRealCPU) {
				t.Errorf("%v by %d: %v, by less %v", d, timeFactor, got, last)
			}
			if timeFactor == 1 && got != d {
				t.Errorf("%v on a real machine: %v", d, got)
			}
			last = got
		}
	}
}
