package waitgraph

import (
	"math/rand/v2"
	"testing"

	"stackshot/internal/waits"
)

// around is the length of the shortest cycle through th, level by level.
func around(w *waits.Waits, th *waits.Wait) (length int) {
	level, seen := []*waits.Wait{th}, map[*waits.Wait]bool{}
	for length = 1; len(level) > 0; length++ {
		var next []*waits.Wait
		for _, a := range level {
			for _, o := range a.Owners {
				b := w.Of[o.Thread]
				if b == th {
					return length
				}
				if b != nil && !seen[b] {
					seen[b] = true
					next = append(next, b)
				}
			}
		}
		level = next
	}
	return 0
}

// TestI3 looks for shorter cycles in parts around the size up to which there is none, and in
// bigger ones through the threads that Deadlock.Cycle promises.
func TestI3(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 13))
	exact, bigger := 0, 0
	for range 40 {
		w, n := newWorld(), 100+r.IntN(400)
		for i := range n {
			x := w.waits(i, waits.UserMutex, old, w.holds((i+1)%n))
			for r.IntN(12) == 0 {
				x.Owners = append(x.Owners, w.holds(r.IntN(n)))
			}
		}
		d := Judge(w.w, Options{}).Deadlocks[0]
		part := d.Part
		if exact++; len(part) > exactPart {
			exact--
			bigger++
			part = part[:bigStarts]
		}
		for _, th := range part {
			if l := around(w.w, th); l < len(d.Cycle) {
				t.Fatalf("part of %d: a cycle of %d, one of %d is there", len(d.Part), len(d.Cycle), l)
			}
		}
		for i, th := range d.Cycle {
			if d.Confidence != waits.Sure || !waitsFor(th, d.Cycle[(i+1)%len(d.Cycle)]) {
				t.Fatalf("%v is no sure cycle", numbers(d.Cycle))
			}
		}
	}
	if exact < 5 || bigger < 5 {
		t.Errorf("%d small parts, %d big ones", exact, bigger)
	}
}

func waitsFor(a, b *waits.Wait) bool {
	for _, o := range a.Owners {
		if o.Thread == b.Thread && !o.Whole {
			return true
		}
	}
	return false
}
