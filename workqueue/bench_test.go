package workqueue

import (
	"fmt"
	"sync"
	"testing"
)

const batch = 1 << 14 // items per filling: goroutine starts vanish in it

// BenchmarkNext: claims from full queues.
func BenchmarkNext(b *testing.B) {
	for _, g := range []int{1, 2, 8} {
		b.Run(fmt.Sprintf("g=%d", g), func(b *testing.B) {
			q := newTest(b, batch, true)
			b.ReportAllocs()
			b.SetBytes(16)
			for left := b.N; left > 0; left -= batch {
				b.StopTimer()
				q.Reset()
				refill(b, q, min(left, batch))
				q.Populated()
				b.StartTimer()
				consume(q, g)
			}
		})
	}
}

// BenchmarkDrainWhileFilled: push and claim at once, ns per item end to end.
func BenchmarkDrainWhileFilled(b *testing.B) {
	for _, g := range []int{1, 2, 8} {
		b.Run(fmt.Sprintf("g=%d", g), func(b *testing.B) {
			q := newTest(b, batch, true)
			b.ReportAllocs()
			b.SetBytes(16)
			for left := b.N; left > 0; left -= batch {
				b.StopTimer()
				q.Reset()
				b.StartTimer()
				var wg sync.WaitGroup
				wg.Go(func() { consume(q, g) })
				refill(b, q, min(left, batch))
				q.Populated()
				wg.Wait()
			}
		})
	}
}

func BenchmarkPush(b *testing.B) {
	q := newTest(b, batch, true)
	b.ReportAllocs()
	b.SetBytes(16)
	for left := b.N; left > 0; left -= batch {
		b.StopTimer()
		q.Reset()
		b.StartTimer()
		refill(b, q, min(left, batch))
	}
}

func refill(t testing.TB, q *Queues, n int) {
	for i := range n {
		if err := q.Push(Item{Index: uint32(i), Count: uint32(i % 20)}); err != nil {
			t.Fatal(err)
		}
	}
}

// consume drains with g workers.
func consume(q *Queues, g int) {
	var wg sync.WaitGroup
	for slot := range g {
		wg.Go(func() {
			for {
				if _, st := q.Next(slot, Kind(1+slot%2), nil, never); st != Got {
					return
				}
			}
		})
	}
	wg.Wait()
}

// Invariant 10: no path allocates, waiting and failing included.
func TestInvariant10NoAllocations(t *testing.T) {
	q, full, idle := newTest(t, 1000, true), newTest(t, 1, true), newTest(t, 1, true)
	fill(t, full, 1)
	turns := 0
	stop := func() bool { turns++; return turns%10 == 0 }
	for name, op := range map[string]func(){
		"push and next": func() { q.Push(Item{Count: 1}); q.Push(Item{Count: 10}); q.Next(0, E, stop, never) },
		"full":          func() { full.Push(Item{Index: 1}) },
		"item":          func() { q.Push(Item{Tgid: -1}) },
		"order":         func() { q.Push(Item{Index: 1}); q.Push(Item{Index: 0}); q.Reset() },
		"waiting":       func() { idle.Next(0, P, stop, never) },
		"deadline":      func() { idle.Next(0, P, nil, sinceStart()+1000) },
		"invalid":       func() { idle.Next(-1, P, nil, 0) },
		"left count":    func() { full.LeftCount() },
		"closed":        func() { idle.Populated(); idle.Push(Item{}); idle.Next(0, P, stop, never); idle.Reset() },
	} {
		if n := testing.AllocsPerRun(100, op); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
