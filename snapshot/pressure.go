package snapshot

import (
	"fmt"
	"strconv"
	"strings"

	"stackshot/internal/procfs"
)

// Engine pull allocates in the window (invariant 1): a kernel that has no memory to
// give would keep the machine stopped while it reclaims some. Thresholds: the
// share of time in which all tasks waited for memory (PSI, /proc/pressure/
// memory "full avg10", percent), and memory free without reclaim of consequence
// (MemAvailable).
const (
	pressureFull10    = 10.0
	minAvailableBytes = 64 << 20
)

// MemoryPressure says why EngineAuto would not take engine pull now; "" if it
// would.
func MemoryPressure() string { return memoryPressure(procfs.FS{}) }

// memoryPressure says why pull should be avoided now; "" if it need not be.
func memoryPressure(fs procfs.FS) string {
	text, _ := fs.Pressure()
	if full, err := strconv.ParseFloat(wordAfter(text, "memory full avg10="), 64); err == nil && full >= pressureFull10 {
		return fmt.Sprintf("all tasks waited for memory %.0f %% of the last 10 s", full)
	}
	text, _ = fs.Meminfo()
	if free, err := strconv.Atoi(wordAfter(text, "MemAvailable:")); err == nil && free<<10 < minAvailableBytes {
		return fmt.Sprintf("only %d MiB of memory are available", free>>10)
	}
	return ""
}

// wordAfter gives the first word behind what a line begins with; "": there is no such line.
func wordAfter(text, begin string) string {
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, begin); ok {
			word, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
			return word
		}
	}
	return ""
}
