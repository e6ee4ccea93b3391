package waitgraph

import (
	"math/rand/v2"
	"testing"
	"time"

	"stackshot/internal/testheap"
	"stackshot/internal/testneed"
	"stackshot/internal/waits"
	"stackshot/kcdata"
)

var raced bool // with the race detector

// TestI9: threads in every shape take time and memory in proportion, and no stack: a
// million in the long form, and fewer where a quadratic step would take a minute, too.
func TestI9(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	testneed.Slow(t)
	n := testneed.Length(100_000, 1_000_000)
	if raced {
		n = 10_000
	}
	base := newWorld()
	for i := range n {
		base.thread(i)
	}
	for _, c := range []struct {
		name string
		make func(w *world, i int) *waits.Wait
		ok   func(v *Verdict) bool
	}{
		{"a cycle", func(w *world, i int) *waits.Wait { return w.waits(i, waits.UserMutex, old, w.holds((i+1)%n)) },
			func(v *Verdict) bool { return len(v.Deadlocks) == 1 && len(v.Deadlocks[0].Cycle) == n }},
		{"pairs", func(w *world, i int) *waits.Wait { return w.waits(i, waits.UserMutex, old, w.holds(i^1)) },
			func(v *Verdict) bool { return len(v.Deadlocks) == n/2 }},
		{"a star around a cycle", func(w *world, i int) *waits.Wait { return w.waits(i, waits.UserMutex, old, w.holds(0)) },
			func(v *Verdict) bool { return len(v.Deadlocks) == 1 && len(v.Deadlocks[0].Behind) == n-1 }},
		{"a chain behind a cycle", func(w *world, i int) *waits.Wait { return w.waits(i, waits.UserMutex, old, w.holds(max(i-1, 0))) },
			func(v *Verdict) bool { return v.Deadlocks[0].Tree[n-2].Depth == n-2 }},
		{"one lock", func(w *world, i int) *waits.Wait {
			x := w.d(i, waits.RWSemWrite, old)
			if x.Resource = (waits.Resource{Kind: waits.RWSem, ID: 1}); i > 0 {
				x.Owners = []waits.Owner{w.holds(0)}
			}
			return x
		}, func(v *Verdict) bool { return len(v.Culprits[0].Victims) == n-1 && len(v.Convoys[0].Waiters) == n }},
		{"a chain", func(w *world, i int) *waits.Wait {
			if i == 0 {
				return w.waits(i, waits.Poll, old)
			}
			return w.waits(i, waits.UserMutex, old, w.holds(i-1))
		}, func(v *Verdict) bool { return v.Culprits[0].Tree[n-2].Depth == n-2 }},
		{"alternatives in a circle", func(w *world, i int) *waits.Wait {
			x := w.waits(i, waits.Pipe, old, w.holds((i+1)%n), w.holds((i+7)%n), w.holds((i+n/2)%n))
			x.AnyOwner = true
			return x
		}, func(v *Verdict) bool { return len(v.Deadlocks) == 1 && len(v.Deadlocks[0].Cycle) == 2 }},
		{"each in D alone", func(w *world, i int) *waits.Wait { return w.d(i, waits.BlockIO, old) },
			func(v *Verdict) bool { return len(v.Culprits) == n }},
	} {
		base.w = &waits.Waits{OneInstant: true, Of: map[*kcdata.Thread]*waits.Wait{}}
		for i := range n {
			base.thread(i).Linux.State = 1
			c.make(base, i)
		}
		base.w.Of = nil
		var v *Verdict
		var took time.Duration
		grew := testheap.Growth(func() {
			began := time.Now()
			v = Judge(base.w, Options{})
			took = time.Since(began)
		})
		if !c.ok(v) {
			t.Errorf("%s: %d deadlocks, %d culprits, %d convoys", c.name, len(v.Deadlocks), len(v.Culprits), len(v.Convoys))
		}
		if took > time.Duration(n)*100*time.Microsecond || grew > int64(n)*4<<10 {
			t.Errorf("%s: %v, heap grew by %d MiB: not linear", c.name, took, grew>>20)
		}
		t.Logf("%s: %v, heap grew by %d MiB", c.name, took.Round(time.Millisecond), grew>>20)
	}
}

// tangle is 10,000 threads with 50,000 edges.
func tangle(r *rand.Rand, owners int, shift float64) *waits.Waits {
	const n = 10_000
	w := newWorld()
	for i := range n {
		w.thread(i)
		if r.Float64() < shift {
			continue
		}
		x := w.d(i, waits.UserMutex, old)
		x.AnyOwner = i%3 != 0
		x.Resource = waits.Resource{Kind: waits.UserMutex, ID: uint64(i % 100)}
		for range owners {
			x.Owners = append(x.Owners, w.holds(r.IntN(n)))
		}
	}
	return w.w
}

// BenchmarkJudge: 10,000 threads, 50,000 edges, in a knot and with one thread in ten that can act.
func BenchmarkJudge(b *testing.B) {
	for name, share := range map[string]float64{"knot": 0, "chains": 0.1} {
		w := tangle(rand.New(rand.NewPCG(9, 13)), 5, share)
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				Judge(w, Options{})
			}
		})
	}
}

// The same graphs take less than 300 ms. Load of the machine only adds: the best of ten counts.
func TestTime(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	if raced {
		t.Skip("the race detector takes the time")
	}
	for name, share := range map[string]float64{"knot": 0, "chains": 0.1} {
		w := tangle(rand.New(rand.NewPCG(9, 13)), 5, share)
		best := time.Hour
		for range 10 {
			began := time.Now()
			Judge(w, Options{})
			best = min(best, time.Since(began))
		}
		if t.Logf("%s: %v", name, best); best > 300*time.Millisecond {
			t.Errorf("%s: %v, at most 300 ms", name, best)
		}
	}
}

// Of several connections of a wait to one process the edge is that in which the process owes an answer,
// whichever comes first.
func TestEdgeOwes(t *testing.T) {
	for _, first := range []bool{true, false} {
		w := newWorld()
		owners := []waits.Owner{w.whole(waits.OtherEnd, 2), w.whole(waits.OtherEnd, 2), w.whole(waits.OtherEnd, 2)}
		owes := 1
		if first {
			owes = 0
		}
		owners[owes].Owes = true
		w.waits(0, waits.Pipe, old, owners...)
		g := newGraph(w.w, time.Second)
		if len(g.edges) != 1 || int(g.edges[0].via) != owes {
			t.Errorf("edges %+v, want one via %d", g.edges, owes)
		}
	}
}
