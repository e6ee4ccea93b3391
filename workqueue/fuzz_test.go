package workqueue

import (
	"errors"
	"slices"
	"testing"
)

// FuzzOperations runs any order of pushes, claims and the end mark against two
// plain slices. Each byte is one operation: the high bit claims, else a push of
// that many threads.
func FuzzOperations(f *testing.F) {
	f.Add(uint8(4), true, []byte{1, 10, 0x80, 0x81, 0x82, 127, 9, 0xff, 3})
	f.Add(uint8(1), false, []byte{1, 1, 0x80, 0x80, 0xff, 0x80})
	f.Fuzz(func(t *testing.T, capacity uint8, amp bool, ops []byte) {
		q := newTest(t, 1+int(capacity), amp)
		var want [2][]Item
		pushed, closed := 0, false
		for _, op := range ops {
			switch {
			case op == 0xff:
				q.Populated()
				closed = true
			case op&0x80 == 0:
				it := Item{Index: uint32(pushed), Count: uint32(op)}
				err := q.Push(it)
				if room := pushed <= int(capacity); closed != errors.Is(err, ErrPopulated) || !closed && room != (err == nil) {
					t.Fatalf("push %d of %d, closed %v: %v", pushed, 1+int(capacity), closed, err)
				}
				if err == nil {
					pushed++
					lane := b2i(amp && op >= 10)
					want[lane] = append(want[lane], it)
				}
			default:
				claimOne(t, q, &want, Kind(op%3), amp, closed)
			}
		}
		left := slices.SortedFunc(slices.Values(slices.Concat(want[0], want[1])), func(a, b Item) int { return int(a.Index) - int(b.Index) })
		if got := slices.Collect(q.Left()); !slices.Equal(got, left) {
			t.Fatalf("left %v, want %v", got, left)
		}
	})
}

// claimOne holds one Next against the slices.
func claimOne(t *testing.T, q *Queues, want *[2][]Item, kind Kind, amp, closed bool) {
	turns := 0
	it, st := q.Next(0, kind, func() bool { turns++; return turns > 2 }, never)
	first := b2i(amp && kind != E)
	for _, lane := range []int{first, 1 - first} {
		if len(want[lane]) > 0 {
			if st != Got || it != want[lane][0] {
				t.Fatalf("kind %d: %+v, %v, want %+v", kind, it, st, want[lane][0])
			}
			want[lane] = want[lane][1:]
			return
		}
	}
	if expect := map[bool]Status{true: Drained, false: Stopped}[closed]; st != expect {
		t.Fatalf("kind %d on empty queues, closed %v: %v, want %v", kind, closed, st, expect)
	}
}

// FuzzHostileWords overwrites any word of the memory but the slots: Next ends,
// nothing panics, every item it returns comes out of the item array.
func FuzzHostileWords(f *testing.F) {
	f.Add(uint16(384/4), uint32(1<<31))
	f.Add(uint16(640/4), uint32(7))
	f.Fuzz(func(t *testing.T, at uint16, word uint32) {
		q := newTest(t, 8, true)
		fill(t, q, 1, 10, 1, 10)
		parts := (&checker{q: q}).shared()
		part := parts[int(at)%2]
		off := int(at) * 4 % (len(part) - 3)
		part[off], part[off+1], part[off+2], part[off+3] = byte(word), byte(word>>8), byte(word>>16), byte(word>>24)
		turns := 0
		for range 20 {
			turns = 0
			q.Next(0, Kind(word%3), func() bool { turns++; return turns > 3 }, never)
		}
		for range q.Left() {
			turns++
		}
		q.Push(Item{Index: 9, Count: word % 20})
		if n := q.LeftCount(); n < 0 || n > 2*q.Capacity() {
			t.Fatalf("%d items left of %d", n, q.Capacity())
		}
	})
}
