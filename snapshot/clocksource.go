package snapshot

import (
	"fmt"
	"os"
	"strings"

	"stackshot/internal/bpf"
)

const clockSourcePath = "/sys/devices/system/clocksource/clocksource0/current_clocksource"

// jiffiesClock says why a clock source cannot be trusted with interrupts off; nil:
// it can, or the kernel does not say which it is.
func jiffiesClock(source string) error {
	if source = strings.TrimSpace(source); source == "jiffies" || source == "refined-jiffies" {
		return fmt.Errorf("%w: the clock source is %s, which stands still while all CPUs have their interrupts off (%s)",
			bpf.ErrUnsupported, source, clockSourcePath)
	}
	return nil
}

// checkSource is jiffiesClock of this machine now. The source can change while the
// machine runs, when the kernel finds the TSC unstable.
func checkSource(h *hooks) error {
	if h.anyClock {
		return nil
	}
	source, _ := os.ReadFile(clockSourcePath)
	return jiffiesClock(string(source))
}
