package workqueue

// Status is how Next ended.
type Status uint8

const (
	Got     Status = iota // the item is the caller's alone
	Drained               // populated and both queues empty: no item will ever come
	Stopped               // the stop condition or the deadline; items may be left
	Invalid               // slot or kind out of range, or head, tail and numbers contradict each other
)

// claiming is a turn of Next cut into single accesses to shared memory, so that
// the model checker can put every other step between any two of them.
//
// Populated is read before the lanes. Read after them, an item pushed in
// between would be left behind by a consumer that believes it saw the end.
// Head is read before tail, so that head > tail cannot come from waiting.
type claiming struct {
	stage     claimStage
	populated bool
	tried     int // lanes found empty in this turn
	lane      int
	head      uint32
	item      Item
}

type claimStage uint8

const (
	readPopulated claimStage = iota
	readHead
	readTail
	claim
	readItem
	turnOver // both lanes empty, not populated
	claimed
	drained
	broken
)

// Next claims one item for the worker in slot, on a CPU of kind: P and SMP look
// into the hard queue first, E into the easy one, then into the other. While
// both are empty and not populated it spins; that time is added to the slot's
// Waited. stop (nil: never) and the deadline, ns of the clock, are read on
// every turn and once before the first, so a stopped worker takes nothing more.
// Nothing is allocated. One worker per slot.
func (q *Queues) Next(slot int, kind Kind, stop func() bool, deadline int64) (Item, Status) {
	if uint(slot) >= MaxSlots || kind > P {
		return Item{}, Invalid
	}
	var since int64
	waiting := false
	for {
		now := q.now()
		if now >= deadline || stop != nil && stop() {
			q.book(slot, waiting, since, now)
			return Item{}, Stopped
		}
		c := claiming{lane: q.first(kind)}
		for c.stage < turnOver {
			q.stepClaim(&c)
		}
		if c.stage != turnOver {
			if waiting {
				q.book(slot, waiting, since, q.now())
			}
			return q.result(slot, &c)
		}
		if !waiting {
			waiting, since = true, now
		}
	}
}

// first is the lane that a CPU of kind looks into first.
func (q *Queues) first(kind Kind) int {
	if kind == E {
		return 0
	}
	return q.queues - 1
}

// book adds a wait that ends now.
func (q *Queues) book(slot int, waiting bool, since, now int64) {
	if !waiting {
		return
	}
	s := &q.f.slots[slot]
	s.waits.Add(1)
	s.waited.Add(uint64(max(now-since, 0)))
}

// result turns the end of a turn into what Next returns.
func (q *Queues) result(slot int, c *claiming) (Item, Status) {
	switch c.stage {
	case claimed:
		q.f.slots[slot].taken.Add(1)
		return c.item, Got
	case drained:
		return Item{}, Drained
	}
	return Item{}, Invalid
}

// stepClaim does one access to shared memory. A lost claim looks at the same
// lane again: another consumer has won, so this repeats at most capacity times.
func (q *Queues) stepClaim(c *claiming) {
	switch c.stage {
	case readPopulated:
		c.populated = q.f.finish.populated.Load() != 0
		c.stage = readHead
	case readHead:
		c.head = q.f.lanes[c.lane].head.Load()
		c.stage = readTail
	case readTail:
		c.stage = q.look(c, q.f.lanes[c.lane].tail.Load())
	case claim:
		c.stage = readHead
		if q.f.lanes[c.lane].head.CompareAndSwap(c.head, c.head+1) {
			c.stage = readItem
		}
	case readItem:
		c.stage = q.fetch(c)
	}
}

// look decides by head and tail of the lane where the turn goes on.
func (q *Queues) look(c *claiming, tail uint32) claimStage {
	switch {
	case tail > uint32(len(q.items)) || c.head > tail:
		return broken
	case c.head < tail:
		return claim
	}
	if c.tried++; c.tried < q.queues {
		c.lane = q.queues - 1 - c.lane
		return readHead
	}
	if c.populated {
		return drained
	}
	return turnOver
}

// fetch copies the claimed item out. Nobody writes it any more.
func (q *Queues) fetch(c *claiming) claimStage {
	n := q.numbers[c.lane][c.head]
	if n >= uint32(len(q.items)) {
		return broken
	}
	c.item = q.items[n]
	return claimed
}
