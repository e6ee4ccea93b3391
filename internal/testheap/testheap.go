// Package testheap lets tests bound the memory that a piece of input makes us hold, and
// gives them memory outside the heap.
package testheap

import (
	"runtime"
	"runtime/debug"
	"testing"
)

// Growth runs f and returns by how many bytes the heap had to grow for it: about
// what f held at its worst, up to twice that. Garbage counts little: the collector is told to let
// only a quarter of what is held come to it, and a collector that falls behind makes the program wait.
// What the heap had already is not counted either, so tests that need much belong into another process.
// f is not to run beside others that allocate.
func Growth(f func()) int64 {
	defer debug.SetGCPercent(debug.SetGCPercent(25))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int64(after.HeapSys - before.HeapSys) // it shrinks only by what stacks take
}

// Bound fails the test if f holds more than most bytes. what names the input.
func Bound(t testing.TB, most int64, what string, f func()) {
	t.Helper()
	if n := Growth(f); n > most {
		t.Errorf("%s made the heap grow by %d MiB, at most %d", what, n>>20, most>>20)
	}
}
