package snapshot

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"stackshot/internal/engine/trap"
)

// With interrupts off on every CPU nobody updates the kernel's clock: it goes on
// only as far as its source counts by itself. So engine trap looks at the source
// before each stop, and such a stop has an upper bound. Should the clock stand still,
// the program ends its waits all the same (internal/bpf/stop.h).

// longestIRQOff is well below where the narrowest source that the kernel takes for
// high-resolution time, acpi_pm with 24 bits, reads as standing still (2.3 s).
const longestIRQOff = 2 * time.Second

const watchdogPath = "/proc/sys/kernel/watchdog_thresh"

// JiffiesClock says why a clock source cannot be trusted with interrupts off; nil:
// it can, or the kernel does not say which it is.
func JiffiesClock(source string) error { return trap.JiffiesClock(source) }

// IRQOffBound is the longest that --max-pause may be with interrupts off: half the
// threshold, in seconds, at which the hard lockup detector takes a CPU for dead
// (kernel.watchdog_thresh; 0: there is none).
func IRQOffBound(watchdog string) time.Duration {
	thresh, err := strconv.Atoi(strings.TrimSpace(watchdog))
	if err != nil || thresh <= 0 {
		return longestIRQOff
	}
	return min(longestIRQOff, time.Duration(thresh)*time.Second/2)
}

// boundPause cuts the pause that was asked for down to what the isolation allows.
func (s *Session) boundPause(isolation string) {
	if isolation != IsolationIRQOff {
		return
	}
	thresh, _ := os.ReadFile(watchdogPath)
	if most := IRQOffBound(string(thresh)); s.options.MaxPause > most {
		s.warn("max_pause_bound", fmt.Sprintf("--max-pause %v is %v with interrupts off: beyond it clocks and watchdogs cannot be trusted", s.options.MaxPause, most))
		s.options.MaxPause = most
	}
}
