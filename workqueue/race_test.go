package workqueue

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"stackshot/internal/testheap"
	"stackshot/internal/testneed"
)

// eachMemory runs over plain memory and over a mapping.
func eachMemory(t *testing.T, capacity int, run func(t *testing.T, mem []byte)) {
	t.Run("heap", func(t *testing.T) { run(t, make([]byte, Size(capacity))) })
	t.Run("mmap", func(t *testing.T) { run(t, testheap.Mapped(t, Size(capacity))) })
}

// crew is one producer and n consumers at once, and who took what.
type crew struct {
	q     *Queues
	taken []atomic.Int32 // by item, in push order
	stop  atomic.Bool
}

// take is one consumer to its end.
func (c *crew) take(t *testing.T, slot int, place map[Item]int) Status {
	last := map[Kind]int{}
	for {
		it, st := c.q.Next(slot, Kind(slot%3), c.stop.Load, never)
		if st != Got {
			return st
		}
		n, known := place[it]
		if !known {
			t.Errorf("slot %d got %+v, which nobody pushed", slot, it)
			return st
		}
		c.taken[n].Add(1)
		lane := Kind(queueOf(it.Count, c.q.queues))
		if n < last[lane] {
			t.Errorf("slot %d got item %d after %d from one queue", slot, n, last[lane])
		}
		last[lane] = n
	}
}

// work is random items in census order, some of them parts of one task.
func work(seed uint64, n int) []Item {
	r := rand.New(rand.NewPCG(seed, 3))
	var items []Item
	for index := uint32(0); len(items) < n; index++ {
		tid := int32(index)*100 + 1
		for range 1 + r.IntN(3) {
			items = append(items, Item{Index: index, Tgid: tid, FirstTid: tid, Count: r.Uint32N(20)})
			tid += 20
		}
	}
	return items[:n]
}

func places(items []Item) map[Item]int {
	m := make(map[Item]int, len(items))
	for i, it := range items {
		m[it] = i
	}
	return m
}

// Invariant 2: filled while drained, each item is taken exactly once, and each
// consumer sees each queue in push order.
func TestInvariant2ExactlyOnce(t *testing.T) {
	testneed.Slow(t)
	for _, amp := range []bool{false, true} {
		for _, consumers := range []int{1, 2, 8} {
			t.Run(fmt.Sprintf("amp=%v/consumers=%d", amp, consumers), func(t *testing.T) {
				eachMemory(t, 1500, func(t *testing.T, mem []byte) { exactlyOnce(t, mem, amp, consumers) })
			})
		}
	}
}

func exactlyOnce(t *testing.T, mem []byte, amp bool, consumers int) {
	q, err := New(mem, 1500, amp, sinceStart)
	if err != nil {
		t.Fatal(err)
	}
	items := work(uint64(consumers), 1500)
	place := places(items)
	c := &crew{q: q, taken: make([]atomic.Int32, len(items))}
	var wg sync.WaitGroup
	for slot := range consumers {
		wg.Go(func() {
			if st := c.take(t, slot, place); st != Drained {
				t.Errorf("slot %d ended %v", slot, st)
			}
		})
	}
	for i, it := range items {
		mustPush(t, q, it)
		if i%64 == 0 {
			runtime.Gosched() // let the consumers run dry
		}
	}
	q.Populated()
	wg.Wait()
	sum := uint64(0)
	for slot := range consumers {
		sum += q.Taken(slot)
	}
	if i := slices.IndexFunc(items, func(it Item) bool { return c.taken[place[it]].Load() != 1 }); i >= 0 {
		t.Errorf("item %d was taken %d times", i, c.taken[i].Load())
	}
	if sum != uint64(len(items)) || q.LeftCount() != 0 {
		t.Errorf("slots took %d items, %d left, of %d", sum, q.LeftCount(), len(items))
	}
}

// Invariant 5: stopped in the middle, taken and left are all items, each once,
// and left is in census order.
func TestInvariant5StopInTheMiddle(t *testing.T) {
	for seed := range uint64(10) {
		q := newTest(t, 2000, seed%2 == 0)
		items := work(seed, 2000)
		place := places(items)
		c := &crew{q: q, taken: make([]atomic.Int32, len(items))}
		var wg sync.WaitGroup
		for slot := range 4 {
			wg.Go(func() { c.take(t, slot, place) })
		}
		pushed := 1000 + int(seed)*80
		for _, it := range items[:pushed] {
			mustPush(t, q, it)
		}
		c.stop.Store(true)
		wg.Wait()
		left, before := 0, -1
		for it := range q.Left() {
			n := place[it]
			if n <= before {
				t.Errorf("seed %d: item %d left after %d", seed, n, before)
			}
			before = n
			c.taken[n].Add(1)
			left++
		}
		for i := range items {
			if want := int32(b2i(i < pushed)); c.taken[i].Load() != want {
				t.Errorf("seed %d: item %d was taken or left %d times, want %d", seed, i, c.taken[i].Load(), want)
			}
		}
		if left != q.LeftCount() {
			t.Errorf("seed %d: %d left, LeftCount %d", seed, left, q.LeftCount())
		}
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
