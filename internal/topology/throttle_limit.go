package topology

import (
	"errors"
	"fmt"
	"time"

	"stackshot/internal/procfs"
)

// ThrottleLimit is how long all of a Read may take. The state of a cooling device
// may come from firmware, or from a bus that is stuck.
const ThrottleLimit = 200 * time.Millisecond

// ThrottleReader asks which CPUs are throttled, under ThrottleLimit. At most one
// question hangs, on a thread of its own; while it does, no other is asked.
type ThrottleReader struct {
	readers *procfs.Readers
	ask     func(cpus []int) map[int]string // constant
}

// NewThrottleReader makes one; ask is Throttles, or what stands in its place in
// tests. No thread is started before the first Read.
func NewThrottleReader(ask func(cpus []int) map[int]string) *ThrottleReader {
	return &ThrottleReader{procfs.NewReaders(1, ThrottleLimit), ask}
}

// Read is Throttles in time. Errors, which say that nothing is known: of kind
// procfs.ErrTimeout, and procfs.ErrExhausted while an earlier question hangs.
func (r *ThrottleReader) Read(cpus []int) (map[int]string, error) {
	answer := new(map[int]string) // after a timeout the helper's alone
	_, err := r.readers.Do(func(buf []byte) ([]byte, error) {
		*answer = r.ask(cpus)
		return buf[:0], nil
	})
	switch {
	case errors.Is(err, procfs.ErrExhausted):
		return nil, fmt.Errorf("%w: an earlier one of /sys/%s does yet", err, coolingDir)
	case errors.Is(err, procfs.ErrTimeout):
		return nil, &procfs.TimeoutError{Path: "/sys/" + coolingDir, Limit: ThrottleLimit}
	case err != nil:
		return nil, err
	}
	return *answer, nil
}

// Close ends the thread, or leaves it to end when it comes loose.
func (r *ThrottleReader) Close() { r.readers.Close() }
