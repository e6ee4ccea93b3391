package stop

import (
	_ "unsafe" // for go:linkname
)

// The Go runtime is kept out of the window by three means: the collector is
// off, SIGURG is blocked in every worker (asynchronous preemption), and the
// worker's goroutine is pinned to its P, which turns off the cooperative
// preemption that every function prologue would otherwise offer. procPin is
// the runtime's own primitive (sync.Pool uses it); there is no other way to it.

//go:linkname procPin runtime.procPin
func procPin() int

//go:linkname procUnpin runtime.procUnpin
func procUnpin()
