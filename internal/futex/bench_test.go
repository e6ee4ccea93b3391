package futex

import (
	"testing"

	"stackshot/kcdata"
)

// Every thread of a large capture waits for a mutex of its process: the table, and the owners.
func BenchmarkOwners(b *testing.B) {
	const threads, inProcess = 1_000_000, 100
	b.ReportAllocs()
	for b.Loop() {
		table := new(Table)
		for i := range uint32(threads) {
			table.Add(Thread{Tid: i + 1, Tgid: i/inProcess*inProcess + 1, Start: uint64(i)}, nil)
		}
		x := table.Index()
		word := func(i uint32) *kcdata.LinuxFutex { return shapes[0].make(i/inProcess*inProcess + 1) }
		for i := range uint32(threads) {
			x.Want(word(i), int(i))
		}
		x.Look()
		owned := 0
		for i := range uint32(threads) {
			f := word(i)
			x.Owner(f, int(i), sharing{})
			owned += int(f.Flags & kcdata.FutexOwned)
		}
		if owned != threads*kcdata.FutexOwned {
			b.Fatal(owned)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/threads, "ns/thread")
}
