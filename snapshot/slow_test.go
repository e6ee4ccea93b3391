package snapshot

import (
	"os"
	"strconv"
	"time"
)

// timeFactor is how much longer than on a real machine everything takes here,
// for tests under software emulation: STACKSHOT_TIME_FACTOR, 1 where it is not set.
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

// slow is a test's own budget as this machine needs it.
func slow(d time.Duration) time.Duration { return d * timeFactor }

// slowed gives a test's options the longer defaults of a slow machine.
func slowed(o Options) Options {
	if timeFactor > 1 {
		orDefault(&o.ArrivalBudget, min(slow(defaultArrivalBudget), maxArrivalBudget))
		orDefault(&o.MaxPause, min(slow(defaultMaxPause), time.Minute))
		orDefault(&o.ReadLimit, slow(defaultReadLimit))
	}
	return o
}
