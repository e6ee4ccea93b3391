package bumpalloc

import (
	"fmt"
	"sync"
	"testing"
)

// parallel splits b.N over g goroutines.
func parallel(b *testing.B, g int, body func(worker, n int)) {
	b.ReportAllocs()
	b.ResetTimer()
	var wg sync.WaitGroup
	for w := range g {
		n := b.N / g
		if w == 0 {
			n += b.N % g
		}
		wg.Go(func() { body(w, n) })
	}
	wg.Wait()
}

// BenchmarkBump: 16 bytes from the own arena, four workers a cluster.
func BenchmarkBump(b *testing.B) {
	const size = 64 << 20
	for _, g := range []int{1, 2, 8} {
		b.Run(fmt.Sprintf("g=%d", g), func(b *testing.B) {
			a := newTest(b, 2, size)
			b.ReportAllocs()
			b.SetBytes(Align)
			for left := b.N; left > 0; left -= size / Align {
				b.StopTimer()
				a.Reset()
				b.StartTimer()
				var wg sync.WaitGroup
				for w := range g {
					wg.Go(func() {
						for range min(left, size/Align) / g {
							a.Alloc(w%2, Align)
						}
					})
				}
				wg.Wait()
			}
		})
	}
}

// BenchmarkTail: arenas used up; a tail goes back and comes again.
func BenchmarkTail(b *testing.B) {
	for _, g := range []int{1, 2, 8} {
		b.Run(fmt.Sprintf("g=%d", g), func(b *testing.B) {
			a, first := usedUp(b, 2, g)
			parallel(b, g, func(w, n int) {
				mine := first[w]
				for range n {
					a.Free(w%2, mine)
					mine, _ = a.Alloc(w%2, 256)
				}
			})
		})
	}
}

// usedUp is an allocator whose arenas are empty but for a block per worker.
func usedUp(b testing.TB, clusters, blocks int) (*Allocator, []Block) {
	a := newTest(b, clusters, (blocks+clusters)*256)
	var out []Block
	for w := range blocks {
		out = append(out, mustAlloc(b, a, w%clusters, 256))
	}
	for {
		if _, err := a.AllocAtLeast(0, 16, 4096); err != nil {
			return a, out
		}
	}
}

// BenchmarkWalk: one walk over a whole list on which nothing fits: the longest
// time a lock is held. ns/op over entries is the price of one entry.
func BenchmarkWalk(b *testing.B) {
	for _, n := range []int{16, 256, 4096} {
		b.Run(fmt.Sprintf("entries=%d", n), func(b *testing.B) {
			a := newTest(b, 1, n*1024)
			for range n {
				x := mustAlloc(b, a, 0, 1024)
				mustFree(b, a, 0, Block{x.Off + 512, 512})
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := a.Alloc(0, 1024); err == nil {
					b.Fatal("a list of 512-byte tails served 1024 bytes")
				}
			}
		})
	}
}

// Invariant 8: no path allocates, the failing ones included.
func TestInvariant8NoAllocations(t *testing.T) {
	a, blocks := usedUp(t, 2, 2)
	b := blocks[0]
	broken := newTest(t, 1, 128, WithSpin(10))
	broken.condemn(0, badSeal, 1)
	held, hb := usedUp(t, 1, 1)
	held.spin = 10
	mustFree(t, held, 0, hb[0])
	held.arenas[0].lock.Store(1)
	fresh := newTest(t, 2, 1<<20)
	for name, op := range map[string]func(){
		"bump": func() { fresh.Alloc(0, 16) },
		"free": func() { a.Free(0, b); b, _ = a.Alloc(1, 256) },
		"split": func() {
			a.Free(0, b)
			x, _ := a.Alloc(0, 128)
			y, _ := a.Alloc(0, 128)
			a.Free(0, x)
			a.Free(0, y)
			a.Reset()
			b, _ = a.Alloc(0, 256)
		},
		"no space":  func() { a.Alloc(0, 1<<30) },
		"size":      func() { a.Alloc(0, 0) },
		"cluster":   func() { a.Alloc(9, 1); a.Free(-1, b) },
		"block":     func() { a.Free(0, Block{1 << 30, 1}) },
		"corrupt":   func() { broken.Alloc(0, 1<<20) },
		"lock held": func() { held.Alloc(0, 64) },
		"stats":     func() { a.Stats(0) },
		"reset":     func() { fresh.Reset() },
		"view":      func() { _ = a.Bytes(b) },
	} {
		if n := testing.AllocsPerRun(100, op); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
