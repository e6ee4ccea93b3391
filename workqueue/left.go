package workqueue

import (
	"fmt"
	"iter"
	"unsafe"
)

// ends are head and tail of a lane, brought into range. Head first: it never
// passes a tail that is read later.
func (q *Queues) ends(i int) (head, tail uint32) {
	head = q.f.lanes[i].head.Load()
	tail = min(q.f.lanes[i].tail.Load(), uint32(len(q.items)))
	return min(head, tail), tail
}

// Left are the published items that nobody claimed, in census order: the
// capture's "left out" list. It is for after the consumers have left; beside
// them it shows a state that may be over. A number out of range is passed over.
//
// The two lanes are merged by item number, which is push order, so parts of one
// task keep their order even where they went to different queues.
func (q *Queues) Left() iter.Seq[Item] {
	return func(yield func(Item) bool) {
		var rest [lanes][]uint32
		for i := range q.queues {
			head, tail := q.ends(i)
			rest[i] = q.numbers[i][head:tail]
		}
		for len(rest[0])+len(rest[1]) > 0 {
			i := 0
			if len(rest[0]) == 0 || len(rest[1]) > 0 && rest[1][0] < rest[0][0] {
				i = 1
			}
			n := rest[i][0]
			rest[i] = rest[i][1:]
			if n < uint32(len(q.items)) && !yield(q.items[n]) {
				return
			}
		}
	}
}

// All are the items pushed so far, in census order, claimed or not.
func (q *Queues) All() iter.Seq[Item] {
	return func(yield func(Item) bool) {
		n := min(int(q.f.producer.pushed.Load()), len(q.items))
		for _, it := range q.items[:n] {
			if !yield(it) {
				return
			}
		}
	}
}

// Items are the items pushed so far, in census order, out of a copy of the memory that a queue
// used: of a machine that has died since. mem begins at an 8-byte boundary. The items lie
// in it. Errors: ErrMemory, it is no such copy.
func Items(mem []byte) ([]Item, error) {
	if len(mem) < Size(1) || uintptr(unsafe.Pointer(&mem[0]))%8 != 0 {
		return nil, fmt.Errorf("workqueue: copy of %d bytes: %w", len(mem), ErrMemory)
	}
	f := (*fixed)(unsafe.Pointer(&mem[0]))
	magic, version, capacity := f.header.magic.Load(), f.header.version.Load(), int(f.header.capacity.Load())
	if magic != layoutMagic || version != layoutVersion || Size(capacity) == 0 || Size(capacity) > len(mem) {
		return nil, fmt.Errorf("workqueue: copy of %d bytes, magic %#x, version %d, %d items: %w", len(mem), magic, version, capacity, ErrMemory)
	}
	items, _ := split(mem, capacity)
	return items[:min(int(f.producer.pushed.Load()), capacity)], nil
}
