package workqueue

import (
	"math"
	"slices"
	"testing"
)

// Invariant 6: threads*(nq-1)/10, at most nq-1: ten threads are hard.
func TestInvariant6Threshold(t *testing.T) {
	for _, c := range []struct {
		threads  uint32
		nq, want int
	}{
		{0, 2, 0}, {1, 2, 0}, {9, 2, 0}, {10, 2, 1}, {11, 2, 1}, {math.MaxUint32, 2, 1},
		{0, 1, 0}, {10, 1, 0}, {math.MaxUint32, 1, 0},
		{4, 3, 0}, {5, 3, 1}, {9, 3, 1}, {10, 3, 2}, {math.MaxUint32, 3, 2},
	} {
		if got := queueOf(c.threads, c.nq); got != c.want {
			t.Errorf("queueOf(%d, %d) = %d, want %d", c.threads, c.nq, got, c.want)
		}
	}
}

func TestInvariant6OrderByKind(t *testing.T) {
	threads := []uint32{1, 10, 9, 200, 3, 11} // easy 0 2 4, hard 1 3 5
	for _, c := range []struct {
		name string
		amp  bool
		kind Kind
		want []uint32
	}{
		{"P hard first", true, P, []uint32{1, 3, 5, 0, 2, 4}},
		{"SMP kind on AMP as P", true, SMP, []uint32{1, 3, 5, 0, 2, 4}},
		{"E easy first", true, E, []uint32{0, 2, 4, 1, 3, 5}},
		{"one queue", false, SMP, []uint32{0, 1, 2, 3, 4, 5}},
		{"one queue, P", false, P, []uint32{0, 1, 2, 3, 4, 5}},
		{"one queue, E", false, E, []uint32{0, 1, 2, 3, 4, 5}},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := newTest(t, 6, c.amp)
			fill(t, q, threads...)
			q.Populated()
			if got := drain(t, q, 0, c.kind); !slices.Equal(got, c.want) {
				t.Errorf("order %v, want %v", got, c.want)
			}
			if q.Taken(0) != 6 || q.Waited(0) != 0 || q.Waits(0) != 0 {
				t.Errorf("taken %d, waited %d ns in %d waits", q.Taken(0), q.Waited(0), q.Waits(0))
			}
		})
	}
}

func TestPushRefuses(t *testing.T) {
	q := newTest(t, 2, true)
	wantErr(t, q.Push(Item{Tgid: -1}), ErrItem)
	wantErr(t, q.Push(Item{FirstTid: -1}), ErrItem)
	mustPush(t, q, Item{Index: 5, Tgid: 7, FirstTid: 7, Count: 100})
	wantErr(t, q.Push(Item{Index: 4}), ErrOrder)
	mustPush(t, q, Item{Index: 5, Tgid: 7, FirstTid: 107, Count: 3})
	wantErr(t, q.Push(Item{Index: 6}), ErrFull)
	if q.Pushed() != 2 || q.Refused() != 1 || q.Capacity() != 2 {
		t.Errorf("pushed %d refused %d capacity %d", q.Pushed(), q.Refused(), q.Capacity())
	}
	q.Populated()
	wantErr(t, q.Push(Item{Index: 7}), ErrPopulated)
	if got := drain(t, q, 0, P); len(got) != 2 {
		t.Errorf("took %d items, want the two that fitted", len(got))
	}
}

func TestNextRefuses(t *testing.T) {
	q := newTest(t, 1, true)
	fill(t, q, 1)
	for _, c := range []struct {
		slot int
		kind Kind
	}{{-1, P}, {MaxSlots, P}, {math.MinInt, P}, {0, P + 1}, {0, math.MaxUint32}} {
		if _, st := q.Next(c.slot, c.kind, nil, never); st != Invalid {
			t.Errorf("slot %d kind %d: %v, want invalid", c.slot, c.kind, st)
		}
	}
	if q.Waited(-1) != 0 || q.Waited(MaxSlots) != 0 {
		t.Error("a slot out of range has counters")
	}
	if q.LeftCount() != 1 {
		t.Error("a refused Next took an item")
	}
}

// Invariant 7: words that contradict each other end in Invalid, not in a loop
// or an index out of range; Left stays inside.
func TestInvariant7HostileWords(t *testing.T) {
	for _, c := range []struct {
		name   string
		damage func(*Queues)
	}{
		{"tail past the end", func(q *Queues) { q.f.lanes[1].tail.Store(5) }},
		{"tail far past the end", func(q *Queues) { q.f.lanes[1].tail.Store(math.MaxUint32) }},
		{"head past tail", func(q *Queues) { q.f.lanes[1].head.Store(4) }},
		{"head far past tail", func(q *Queues) { q.f.lanes[1].head.Store(math.MaxUint32) }},
		{"number past the end", func(q *Queues) { q.numbers[1][0] = 4 }},
		{"number far past the end", func(q *Queues) { q.numbers[1][0] = math.MaxUint32 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := newTest(t, 4, true)
			fill(t, q, 10, 10, 1)
			c.damage(q)
			n := 0
			for range q.Left() {
				n++
			}
			if n > 5 || q.LeftCount() > 5 || q.LeftCount() < 0 {
				t.Errorf("%d items left, count %d", n, q.LeftCount())
			}
			if _, st := q.Next(0, P, nil, never); st != Invalid {
				t.Errorf("status %v, want invalid", st)
			}
			q.f.lanes[1].tail.Store(math.MaxUint32)
			wantErr(t, q.Push(Item{Index: 9, Count: 10}), ErrFull)
		})
	}
}

func TestInvariant5Left(t *testing.T) {
	q := newTest(t, 8, true)
	threads := []uint32{1, 10, 2, 20, 3}
	fill(t, q, threads...)
	mustPush(t, q, Item{Index: 5, Tgid: 5, FirstTid: 50, Count: 12}) // one task in three parts,
	mustPush(t, q, Item{Index: 5, Tgid: 5, FirstTid: 62, Count: 4})  // the middle one easy
	mustPush(t, q, Item{Index: 5, Tgid: 5, FirstTid: 66, Count: 12})
	q.Next(0, P, nil, never) // 1
	q.Next(1, E, nil, never) // 0
	var index, first []int
	for it := range q.Left() {
		index, first = append(index, int(it.Index)), append(first, int(it.FirstTid))
	}
	if !slices.Equal(index, []int{2, 3, 4, 5, 5, 5}) || !slices.Equal(first[3:], []int{50, 62, 66}) {
		t.Errorf("left %v, first threads %v", index, first)
	}
	if q.LeftCount() != 6 {
		t.Errorf("LeftCount %d, want 6", q.LeftCount())
	}
	for range q.Left() {
		break // stopping early is fine
	}
	q.Reset()
	for it := range q.Left() {
		t.Errorf("%+v left after Reset", it)
	}
	if q.Pushed() != 0 || q.Taken(0) != 0 || q.LeftCount() != 0 {
		t.Error("Reset leaves counters")
	}
	fill(t, q, 1)
	q.Populated()
	if got := drain(t, q, 0, P); len(got) != 1 {
		t.Errorf("after Reset took %v", got)
	}
}

func TestKindsAreTheFileFormats(t *testing.T) {
	if SMP != 0 || E != 1 || P != 2 {
		t.Errorf("SMP %d E %d P %d, want 0 1 2", SMP, E, P)
	}
}
