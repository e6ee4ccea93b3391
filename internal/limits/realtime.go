package limits

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// leastRealTime is how long a thread of a capture may have to run at a real-time
// priority without a pause, in microseconds: the longest stop with interrupts off.
const leastRealTime = 2_500_000

// RealTime says why no thread of this process may run at a real-time priority though it
// might have the right to: the kernel would kill the process in the middle of its work.
func RealTime() error {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_RTTIME, &l) == nil && l.Max < leastRealTime {
		return fmt.Errorf("RLIMIT_RTTIME is %d us, and %d are needed", l.Max, leastRealTime)
	}
	return nil
}
