package workqueue

import (
	"errors"
	"slices"
	"testing"
)

// All gives every item once, in census order, whatever was claimed.
func TestAll(t *testing.T) {
	q := newTest(t, 8, true)
	var want []Item
	for i := range uint32(6) {
		it := Item{Index: i, Tgid: int32(100 + i), Count: 1 + 12*(i%2)} // both lanes
		if err := q.Push(it); err != nil {
			t.Fatal(err)
		}
		want = append(want, it)
	}
	q.Populated()
	for range 3 {
		if _, status := q.Next(0, P, nil, never); status != Got {
			t.Fatal(status)
		}
	}
	if got := slices.Collect(q.All()); !slices.Equal(got, want) {
		t.Errorf("All: %v, want %v", got, want)
	}
	for range q.All() {
		break // stops without a panic
	}
	q.Reset()
	if got := slices.Collect(q.All()); len(got) != 0 {
		t.Errorf("after Reset: %v", got)
	}
}

// Items reads a copy of a queue's memory, also one that was cut behind the items, and refuses what is none.
func TestItems(t *testing.T) {
	const capacity = 4
	mem := make([]byte, Size(capacity))
	q, err := New(mem, capacity, true, sinceStart)
	if err != nil {
		t.Fatal(err)
	}
	fill(t, q, 1, 13, 1)
	want := slices.Collect(q.All())
	if got, err := Items(mem); err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
	q.f.producer.pushed.Store(1 << 30) // a hostile word
	if got, err := Items(mem); err != nil || len(got) != capacity {
		t.Errorf("%d items of %d, %v", len(got), capacity, err)
	}
	h := &q.f.header
	for what, spoil := range map[string]func(){
		"magic":         func() { h.magic.Store(layoutMagic + 1) },
		"version":       func() { h.version.Store(layoutVersion + 1) },
		"no capacity":   func() { h.capacity.Store(0) },
		"one more":      func() { h.capacity.Store(capacity + 1) },
		"too much":      func() { h.capacity.Store(MaxCapacity + 1) },
		"cut by a byte": func() { mem = mem[:len(mem)-1] },
		"hardly a head": func() { mem = mem[:8] },
	} {
		whole := mem
		h.magic.Store(layoutMagic)
		h.version.Store(layoutVersion)
		h.capacity.Store(capacity)
		spoil()
		if _, err := Items(mem); !errors.Is(err, ErrMemory) {
			t.Errorf("%s: %v", what, err)
		}
		mem = whole
	}
}
