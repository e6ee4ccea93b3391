package workqueue

// pushing is a Push cut into single accesses to shared memory, so that the
// model checker can put every other step between any two of them. The order of
// the stages is the protocol: the item, the number that leads to it, the tail
// that publishes both.
type pushing struct {
	stage pushStage
	item  Item
	n     uint32 // the item's number, in push order
	lane  int
	at    uint32 // place in the lane
}

type pushStage uint8

const (
	writeItem pushStage = iota
	writeNumber
	publish
	pushed
)

// queueOf is the queue for a task of so many threads where there are nq: with
// two, ten threads or more are hard.
func queueOf(threads uint32, nq int) int {
	top := uint64(nq - 1)
	return int(min(uint64(threads)*top/10, top))
}

// Push adds an item; one producer only. Items come in census order; the parts
// of one task follow one another. Nothing is allocated. Errors: ErrFull (the
// item is counted in Refused), ErrPopulated, ErrOrder, ErrItem.
func (q *Queues) Push(it Item) error {
	p, err := q.startPush(it)
	if err != nil {
		return err
	}
	for p.stage != pushed {
		q.stepPush(&p)
	}
	return nil
}

// startPush checks an item and finds its place. It reads only the producer's
// own words.
func (q *Queues) startPush(it Item) (pushing, error) {
	n := q.f.producer.pushed.Load()
	switch {
	case q.f.finish.populated.Load() != 0:
		return pushing{}, ErrPopulated
	case it.Tgid < 0 || it.FirstTid < 0:
		return pushing{}, ErrItem
	case n >= uint32(len(q.items)):
		q.f.producer.refused.Add(1)
		return pushing{}, ErrFull
	case n > 0 && it.Index < q.items[n-1].Index:
		return pushing{}, ErrOrder
	}
	lane := queueOf(it.Count, q.queues)
	at := q.f.lanes[lane].tail.Load()
	if at >= uint32(len(q.items)) {
		q.f.producer.refused.Add(1)
		return pushing{}, ErrFull // a tail that no Push wrote
	}
	return pushing{item: it, n: n, lane: lane, at: at}, nil
}

// stepPush does one access to memory that consumers read.
func (q *Queues) stepPush(p *pushing) {
	switch p.stage {
	case writeItem:
		q.items[p.n] = p.item
		q.f.producer.pushed.Store(p.n + 1)
	case writeNumber:
		q.numbers[p.lane][p.at] = p.n
	case publish:
		q.f.lanes[p.lane].tail.Swap(p.at + 1)
	}
	p.stage++
}

// Populated says that the last item is pushed. Only now may a consumer that
// finds both queues empty leave.
func (q *Queues) Populated() { q.f.finish.populated.Swap(1) }

// Refused is the number of items that Push had no room for.
func (q *Queues) Refused() int { return int(q.f.producer.refused.Load()) }
