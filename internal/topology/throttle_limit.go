package topology

import (
	"errors"
	"fmt"
	"time"

	"stackshot/internal/procfs"
)

// ThrottleLimit is how long a Read may take. The state of a cooling device may come from
// firmware, or from a bus that is stuck.
const ThrottleLimit = 200 * time.Millisecond

// ThrottleReader finds the CPUs that are throttled, within ThrottleLimit. It reads on a
// thread of its own; while a read hangs there, it begins no other.
type ThrottleReader struct {
	readers *procfs.Readers
	ask     func(cpus []int) map[int]string // constant
}

// NewThrottleReader makes one. ask is Throttles; tests give another function. No thread is
// started before the first Read.
func NewThrottleReader(ask func(cpus []int) map[int]string) *ThrottleReader {
	return &ThrottleReader{procfs.NewReaders(1, ThrottleLimit), ask}
}

// Read is Throttles within the time limit. After an error nothing is known: of kind
// procfs.ErrTimeout, or procfs.ErrExhausted while an earlier read hangs.
func (r *ThrottleReader) Read(cpus []int) (map[int]string, error) {
	answer := new(map[int]string) // after a timeout only the helper uses it
	_, err := r.readers.Do(func(buf []byte) ([]byte, error) {
		*answer = r.ask(cpus)
		return buf[:0], nil
	})
	switch {
	case errors.Is(err, procfs.ErrExhausted):
		return nil, fmt.Errorf("%w: an earlier read of /sys/%s has not ended", err, coolingDir)
	case errors.Is(err, procfs.ErrTimeout):
		return nil, &procfs.TimeoutError{Path: "/sys/" + coolingDir, Limit: ThrottleLimit}
	case err != nil:
		return nil, err
	}
	return *answer, nil
}

// Close ends the thread. One that hangs ends when it comes loose.
func (r *ThrottleReader) Close() { r.readers.Close() }
