package limits

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// leastRealTime is for how long a thread of a capture may have to run at a real-time priority
// without a pause, in microseconds: as long as the longest stop with interrupts off.
const leastRealTime = 2_500_000

// RealTime says why no thread of this process should run at a real-time priority, even if it
// has the right to: at RLIMIT_RTTIME the kernel would kill the process in the middle of its
// work. nil: the limit is high enough.
func RealTime() error {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_RTTIME, &l) == nil && l.Max < leastRealTime {
		return fmt.Errorf("RLIMIT_RTTIME is %d us, and %d are needed", l.Max, leastRealTime)
	}
	return nil
}
