package workqueue

import (
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
