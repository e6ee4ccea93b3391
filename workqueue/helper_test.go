package workqueue

import (
	"errors"
	"math"
	"testing"
	"time"
)

// never is a deadline that a test states on purpose.
const never = math.MaxInt64

func newTest(t testing.TB, capacity int, amp bool, opts ...Option) *Queues {
	t.Helper()
	q, err := New(make([]byte, Size(capacity)), capacity, amp, sinceStart)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range opts {
		o(q)
	}
	return q
}

var start = time.Now()

// sinceStart is a clock: ns of this process.
func sinceStart() int64 { return int64(time.Since(start)) }

// Option changes what newTest makes.
type Option func(*Queues)

func WithClock(now func() int64) Option { return func(q *Queues) { q.now = now } }

func (s Status) String() string {
	return [...]string{"got", "drained", "stopped", "invalid"}[s]
}

// LeftCount is the number of published items that nobody claimed.
func (q *Queues) LeftCount() int {
	n := 0
	for i := range q.queues {
		head, tail := q.ends(i)
		n += int(tail - head)
	}
	return n
}

func (q *Queues) Pushed() int           { return int(q.f.producer.pushed.Load()) }
func (q *Queues) Waits(slot int) uint64 { return q.f.slots[slot].waits.Load() }
func (q *Queues) Taken(slot int) uint64 { return q.f.slots[slot].taken.Load() }

// fill pushes one item per thread count, census index and tgid by place.
func fill(t testing.TB, q *Queues, threads ...uint32) {
	t.Helper()
	for i, n := range threads {
		mustPush(t, q, Item{Index: uint32(i), Tgid: int32(i), Count: n})
	}
}

func mustPush(t testing.TB, q *Queues, it Item) {
	t.Helper()
	if err := q.Push(it); err != nil {
		t.Fatalf("Push(%+v): %v", it, err)
	}
}

func wantErr(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("error %v, want %v", err, want)
	}
}

// drain takes until the queue says there is nothing; the census indices in the
// order they came.
func drain(t testing.TB, q *Queues, slot int, kind Kind) []uint32 {
	t.Helper()
	var got []uint32
	for {
		it, st := q.Next(slot, kind, nil, never)
		switch st {
		case Got:
			got = append(got, it.Index)
		case Drained:
			return got
		default:
			t.Fatalf("Next: %v", st)
		}
	}
}
