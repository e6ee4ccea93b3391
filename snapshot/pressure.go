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
	if text, err := fs.Pressure(); err == nil {
		if full, ok := full10(text); ok && full >= pressureFull10 {
			return fmt.Sprintf("all tasks waited for memory %.0f %% of the last 10 s", full)
		}
	}
	if text, err := fs.Meminfo(); err == nil {
		if free, ok := available(text); ok && free < minAvailableBytes {
			return fmt.Sprintf("only %d MiB of memory are available", free>>20)
		}
	}
	return ""
}

func full10(text string) (float64, bool) {
	for line := range strings.Lines(text) {
		rest, ok := strings.CutPrefix(line, "memory full avg10=")
		if !ok {
			continue
		}
		word, _, _ := strings.Cut(rest, " ")
		v, err := strconv.ParseFloat(word, 64)
		return v, err == nil
	}
	return 0, false
}

func available(text string) (int64, bool) {
	for line := range strings.Lines(text) {
		rest, ok := strings.CutPrefix(line, "MemAvailable:")
		if !ok {
			continue
		}
		kb, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
		return kb << 10, err == nil
	}
	return 0, false
}
