package snapshot

import (
	_ "unsafe" // for go:linkname

	"stackshot/internal/timens"
)

// The Go runtime is kept out of the window by three means: the collector is
// off, SIGURG is blocked in every worker (asynchronous preemption), and the
// worker's goroutine is pinned to its P, which turns off the cooperative
// preemption that every function prologue would otherwise offer. procPin is
// the runtime's own primitive (sync.Pool uses it); it has no other door.

//go:linkname procPin runtime.procPin
func procPin() int

//go:linkname procUnpin runtime.procUnpin
func procUnpin()

// ownNanotime is CLOCK_MONOTONIC of this process in ns, through the vDSO: no
// system call, no allocation.
//
//go:linkname ownNanotime runtime.nanotime
func ownNanotime() int64

// nanotime is the machine's CLOCK_MONOTONIC in ns, which bpf_ktime_get_ns reads
// too: every time in a capture is of that clock. Open holds the two against each
// other (checkClock).
func nanotime() int64 { return ownNanotime() - timens.Monotonic }
