package stop

import (
	"math"
	"runtime"
	"runtime/debug"
	"time"

	"stackshot/internal/clock"
)

// QuietGC keeps the Go collector off and lets a collection under way end, so that
// nothing asks the Go runtime to stop its own world while a worker cannot
// answer. SetGCPercent waits for the marking; what comes after it, a word from
// every P, ends before ReadMemStats may stop the world. A goroutine may have decided
// to collect just before, and begin only now. So QuietGC looks again until some time
// has passed without a collection.
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

// RestoreGC turns the collector on again, with the settings of before.
func (m *Team) RestoreGC() {
	if m.collector != nil {
		m.collector()
		m.collector = nil
	}
}
