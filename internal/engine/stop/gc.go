package stop

import (
	"math"
	"runtime"
	"runtime/debug"
	"stackshot/internal/clock"
	"time"
)

// QuietGC keeps the Go collector off and lets a collection under way end, so that
// nothing asks the Go runtime to stop its own world while a worker cannot
// answer. SetGCPercent waits for the marking; what comes after it, a word from
// every P, ends before ReadMemStats may stop the world. A goroutine that had
// decided to collect just before, and has not begun, begins now: so it is looked
// again until a while has passed without.
func (m *Team) QuietGC() {
	if m.collector != nil {
		return
	}
	limit := debug.SetMemoryLimit(math.MaxInt64) // first, or it could begin one
	percent := debug.SetGCPercent(-1)
	var was, now runtime.MemStats
	runtime.ReadMemStats(&was)
	for range quietLooks {
		clock.Nap(quietNap)
		if runtime.ReadMemStats(&now); now.NumGC == was.NumGC {
			break
		}
		was = now
	}
	m.collector = func() {
		debug.SetMemoryLimit(limit)
		debug.SetGCPercent(percent)
	}
}

const (
	quietNap   = 100 * time.Microsecond
	quietLooks = 10
)

// RestoreGC puts the collector back.
func (m *Team) RestoreGC() {
	if m.collector != nil {
		m.collector()
		m.collector = nil
	}
}
