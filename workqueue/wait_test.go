package workqueue

import "testing"

// ticker is a clock that moves by step at every reading and may do something.
type ticker struct {
	now, step int64
	at        map[int64]func()
}

func (c *ticker) read() int64 {
	c.now += c.step
	if do := c.at[c.now]; do != nil {
		do()
	}
	return c.now
}

// Invariant 8: the wait is from the turn that first found nothing to the turn
// that found something, per slot.
func TestInvariant8WaitIsMeasured(t *testing.T) {
	c := &ticker{step: 10}
	q := newTest(t, 4, true, WithClock(c.read))
	c.at = map[int64]func(){
		40:  func() { mustPush(t, q, Item{Index: 1, Count: 1}) }, // seen in the turn that begins at 40, read again at 50
		200: func() { q.Populated() },                            // likewise 210
	}
	it, st := q.Next(3, P, nil, never)
	if st != Got || it.Index != 1 {
		t.Fatalf("%+v, %v", it, st)
	}
	if q.Waited(3) != 50-10 || q.Waits(3) != 1 || q.Waited(2) != 0 {
		t.Errorf("waited %d ns in %d waits, want 40 in 1; slot 2 %d", q.Waited(3), q.Waits(3), q.Waited(2))
	}
	if _, st = q.Next(3, P, nil, never); st != Drained {
		t.Fatal(st)
	}
	if want := uint64(40 + 210 - 60); q.Waited(3) != want || q.Waits(3) != 2 {
		t.Errorf("waited %d ns in %d waits, want %d in 2", q.Waited(3), q.Waits(3), want)
	}
	if _, st = q.Next(3, E, nil, never); st != Drained || q.Waits(3) != 2 {
		t.Errorf("%v after the end, %d waits; a populated queue is not waited on", st, q.Waits(3))
	}
}

// Invariant 9: the deadline and the stop condition end a wait in the very turn
// they come true, and nothing is taken once they are.
func TestInvariant9Deadline(t *testing.T) {
	c := &ticker{step: 10}
	q := newTest(t, 4, false, WithClock(c.read))
	if _, st := q.Next(0, SMP, nil, 100); st != Stopped || c.now != 100 {
		t.Fatalf("%v at %d, want stopped at 100", st, c.now)
	}
	if q.Waited(0) != 90 {
		t.Errorf("waited %d ns, want 90", q.Waited(0))
	}
	fill(t, q, 1)
	for _, deadline := range []int64{0, -1, 100, c.now + 10} {
		if _, st := q.Next(0, SMP, nil, deadline); st != Stopped || q.LeftCount() != 1 {
			t.Errorf("deadline %d at %d: %v, %d left", deadline, c.now, st, q.LeftCount())
		}
	}
	if _, st := q.Next(0, SMP, nil, c.now+11); st != Got {
		t.Errorf("%v before the deadline", st)
	}
}

func TestInvariant9Stop(t *testing.T) {
	q := newTest(t, 4, false)
	turns := 0
	stop := func() bool { turns++; return turns == 5 }
	if _, st := q.Next(0, SMP, stop, never); st != Stopped || turns != 5 {
		t.Fatalf("%v after %d turns, want stopped after 5", st, turns)
	}
	fill(t, q, 1)
	if _, st := q.Next(0, SMP, func() bool { return true }, never); st != Stopped || q.LeftCount() != 1 {
		t.Errorf("%v, %d left: a stopped worker took an item", st, q.LeftCount())
	}
}

// Whatever a producer does between two turns of a waiting consumer, the
// consumer sees it in the next one: the real Next, its turns cut by stop.
func TestDrainWhileFilled(t *testing.T) {
	q := newTest(t, 3, true)
	turn := 0
	stop := func() bool {
		switch turn++; turn {
		case 3:
			mustPush(t, q, Item{Index: 0, Count: 1})
		case 6:
			mustPush(t, q, Item{Index: 1, Count: 50})
			mustPush(t, q, Item{Index: 2, Count: 1})
		case 10:
			q.Populated()
		}
		return false
	}
	for _, want := range []uint32{0, 1, 2} {
		if it, st := q.Next(0, P, stop, never); st != Got || it.Index != want {
			t.Fatalf("%+v, %v, want item %d", it, st, want)
		}
	}
	if _, st := q.Next(0, P, stop, never); st != Drained || turn < 10 {
		t.Fatalf("%v in turn %d", st, turn)
	}
}
