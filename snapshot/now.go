package snapshot

import _ "unsafe" // for go:linkname

// The Go runtime is kept out of the window by three means: the collector is
// off, SIGURG is blocked in every worker (asynchronous preemption), and the
// worker's goroutine is pinned to its P, which turns off the cooperative
// preemption that every function prologue would otherwise offer. procPin is
// the runtime's own primitive (sync.Pool uses it); it has no other door.

//go:linkname procPin runtime.procPin
func procPin() int

//go:linkname procUnpin runtime.procUnpin
func procUnpin()

// nanotime is CLOCK_MONOTONIC in ns through the vDSO: no system call, no
// allocation, the same clock as bpf_ktime_get_ns.
//
//go:linkname nanotime runtime.nanotime
func nanotime() int64
