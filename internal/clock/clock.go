package clock

import (
	"time"
	_ "unsafe" // for go:linkname

	"golang.org/x/sys/unix"

	"stackshot/internal/timens"
)

// ownNanotime is CLOCK_MONOTONIC of this process in ns, through the vDSO: no
// system call, no allocation.
//
//go:linkname ownNanotime runtime.nanotime
func ownNanotime() int64

// Nanotime is the machine's CLOCK_MONOTONIC in ns, which bpf_ktime_get_ns reads
// too: every time in a capture is of that clock. Open compares the two
// (internal/engine/stop/checkclock.go).
func Nanotime() int64 { return ownNanotime() - timens.Monotonic }

// Moment is the machine's three clocks at one time, ns.
type Moment struct{ Monotonic, Boottime, Realtime uint64 }

// Now reads the three clocks next to each other.
func Now() Moment {
	return Moment{
		readClock(unix.CLOCK_MONOTONIC) - uint64(timens.Monotonic),
		readClock(unix.CLOCK_BOOTTIME) - uint64(timens.Boottime),
		readClock(unix.CLOCK_REALTIME),
	}
}

// MomentOf is what the clocks showed when CLOCK_MONOTONIC showed at, if nobody
// has set one of them since; 0: now.
func MomentOf(at uint64) Moment {
	m := Now()
	if at == 0 || at > m.Monotonic {
		return m
	}
	ago := m.Monotonic - at
	return Moment{at, m.Boottime - ago, m.Realtime - ago}
}

func readClock(id int32) uint64 {
	var ts unix.Timespec
	unix.ClockGettime(id, &ts)
	return uint64(ts.Nano())
}

// BootEpoch is CLOCK_REALTIME minus CLOCK_BOOTTIME, to the second: the same for
// every capture unless somebody sets the clock.
func BootEpoch() uint64 {
	m := Now()
	const second = 1_000_000_000
	return (m.Realtime - m.Boottime + second/2) / second * second
}

// Nap sleeps on this thread. A timer of the Go runtime may depend on another thread,
// and that thread may wait behind the very task that keeps a CPU.
func Nap(d time.Duration) {
	ts := unix.NsecToTimespec(int64(d))
	unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &ts, nil)
}
