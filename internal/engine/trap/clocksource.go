package trap

import (
	"fmt"
	"os"
	"strings"

	"stackshot/internal/bpf"
	"stackshot/internal/engine"
)

const ClockSourcePath = "/sys/devices/system/clocksource/clocksource0/current_clocksource"

// JiffiesClock says why a clock source cannot be trusted with interrupts off; nil:
// it can, or the kernel does not say which it is.
func JiffiesClock(source string) error {
	if source = strings.TrimSpace(source); source == "jiffies" || source == "refined-jiffies" {
		return fmt.Errorf("%w: the clock source is %s, which stands still while all CPUs have their interrupts off (%s)",
			bpf.ErrUnsupported, source, ClockSourcePath)
	}
	return nil
}

// CheckSource is JiffiesClock for the source that this machine uses now. The source
// can change while the machine runs, when the kernel finds the TSC unstable.
func CheckSource(h *engine.Hooks) error {
	if h.AnyClock {
		return nil
	}
	source, _ := os.ReadFile(ClockSourcePath)
	return JiffiesClock(string(source))
}
