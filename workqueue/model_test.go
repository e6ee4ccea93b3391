package workqueue

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unsafe"
)

// The model checker. One producer and two consumers run the very steps that
// Push and Next are made of, one access to shared memory each, in every order
// there is. A state is the shared memory and where each machine stands; each
// state is visited once, so spinning ends.

// machines are the three of them, small enough to be copied at every fork.
type machines struct {
	next      int // items the producer has started
	push      pushing
	pushing   bool
	published bool
	cons      [2]consumer
}

type consumer struct {
	c    claiming
	kind Kind
	done bool
	got  [4]uint8 // times each item was taken
}

// bug is a mistake built in to see that the checker finds it.
type bug int

const (
	noBug         bug = iota
	lateFlag          // populated read after the lanes
	earlyTail         // tail published before the item
	plainClaim        // head moved by load and store
	earlyDrained      // populated published before the last item
	forgottenLane     // only the first lane looked into
)

// checker explores; q's memory is saved and restored around each step.
type checker struct {
	q       *Queues
	threads []uint32
	bug     bug
	seen    map[string]bool
	ends    int
	broken  string // first violation
}

func newChecker(t *testing.T, amp bool, threads []uint32, b bug) *checker {
	return &checker{q: newTest(t, len(threads), amp), threads: threads, bug: b, seen: map[string]bool{}}
}

// shared is the part of memory that steps touch: all but the slots.
func (k *checker) shared() [][]byte {
	at, end := unsafe.Offsetof(k.q.f.slots), unsafe.Sizeof(*k.q.f)
	return [][]byte{k.q.mem[:at], k.q.mem[end:]}
}

func (k *checker) save() []byte { return slices.Concat(k.shared()...) }

func (k *checker) restore(s []byte) {
	for _, part := range k.shared() {
		s = s[copy(part, s):]
	}
}

// explore visits m in the present memory, then all its successors.
func (k *checker) explore(m machines) {
	mem := k.save()
	key := string(mem) + fmt.Sprint(m)
	if k.broken != "" || k.seen[key] {
		return
	}
	k.seen[key] = true
	moved := false
	for who := range 3 {
		n := m
		if !k.step(&n, who) {
			continue
		}
		moved = true
		k.explore(n)
		k.restore(mem)
	}
	if !moved {
		k.end(m)
	}
}

// step moves one machine by one access, or says that it has finished.
func (k *checker) step(m *machines, who int) bool {
	if who == 0 {
		return k.stepProducer(m)
	}
	return k.stepConsumer(&m.cons[who-1])
}

func (k *checker) stepProducer(m *machines) bool {
	last := len(k.threads)
	if !m.published && !m.pushing && (m.next == last || k.bug == earlyDrained && m.next == last-1) {
		k.q.Populated()
		m.published = true
		return true
	}
	if !m.pushing {
		if m.next == last {
			return false
		}
		k.start(m)
	}
	if k.bug == earlyTail { // publish, item, number
		m.push.stage = []pushStage{publish, writeItem, writeNumber}[m.push.stage]
		at := m.push.stage
		k.q.stepPush(&m.push)
		m.push.stage = map[pushStage]pushStage{publish: writeNumber, writeItem: publish, writeNumber: pushed}[at]
	} else {
		k.q.stepPush(&m.push)
	}
	m.pushing = m.push.stage != pushed
	return true
}

// start begins the next Push; the flag may be up already in a broken producer.
func (k *checker) start(m *machines) {
	flag := k.q.f.finish.populated.Swap(0)
	p, err := k.q.startPush(Item{Index: uint32(m.next), Tgid: int32(m.next) + 100, Count: k.threads[m.next]})
	k.q.f.finish.populated.Swap(flag)
	if err != nil {
		k.fail("push %d: %v", m.next, err)
	}
	m.push, m.pushing = p, true
	m.next++
}

func (k *checker) stepConsumer(c *consumer) bool {
	if c.done {
		return false
	}
	switch {
	case k.bug == plainClaim && c.c.stage == claim:
		k.q.f.lanes[c.c.lane].head.Store(c.c.head + 1)
		c.c.stage = readItem
	case k.bug == forgottenLane && c.c.stage == readHead && c.c.tried == 1:
		c.c.stage = turnOver
		if c.c.populated {
			c.c.stage = drained
		}
	default:
		k.q.stepClaim(&c.c)
	}
	if k.bug == lateFlag && c.c.stage == turnOver && k.q.f.finish.populated.Load() != 0 {
		c.c.stage = drained
	}
	k.settle(c)
	return true
}

// settle books the end of a turn and begins the next one.
func (k *checker) settle(c *consumer) {
	switch c.c.stage {
	case claimed:
		it := c.c.item
		if it.Index >= uint32(len(k.threads)) || it.Tgid != int32(it.Index)+100 || it.Count != k.threads[it.Index] {
			k.fail("item read before it was written: %+v", it)
			return
		}
		c.got[it.Index]++
	case drained:
		c.done = true
		return
	case broken:
		k.fail("contradiction seen by a consumer")
	case turnOver:
	default:
		return
	}
	c.c = claiming{lane: k.q.first(c.kind)}
}

// end checks a state from which nobody moves any more.
func (k *checker) end(m machines) {
	k.ends++
	for i := range k.threads {
		if n := m.cons[0].got[i] + m.cons[1].got[i]; n != 1 {
			k.fail("item %d was taken %d times", i, n)
		}
	}
	if k.q.LeftCount() != 0 {
		k.fail("%d items are left", k.q.LeftCount())
	}
}

func (k *checker) fail(format string, args ...any) {
	if k.broken == "" {
		k.broken = fmt.Sprintf(format, args...)
	}
}

// run explores everything from the beginning.
func (k *checker) run(kinds [2]Kind) {
	m := machines{}
	for i, kind := range kinds {
		m.cons[i] = consumer{kind: kind, c: claiming{lane: k.q.first(kind)}}
	}
	k.explore(m)
	if k.ends == 0 && k.broken == "" {
		k.fail("no schedule comes to an end")
	}
}

// Invariants 2, 3 and 4 over all interleavings of three items.
func TestInvariant2Exhaustive(t *testing.T) {
	for _, c := range []struct {
		name    string
		amp     bool
		threads []uint32
		kinds   [2]Kind
	}{
		{"SMP", false, []uint32{1, 1, 1}, [2]Kind{SMP, SMP}},
		{"AMP mixed", true, []uint32{1, 10, 1}, [2]Kind{P, E}},
		{"AMP two hard", true, []uint32{10, 10, 1}, [2]Kind{P, P}},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := newChecker(t, c.amp, c.threads, noBug)
			k.run(c.kinds)
			if k.broken != "" {
				t.Error(k.broken)
			}
			t.Logf("%d states, %d ends", len(k.seen), k.ends)
		})
	}
}

// A checker that finds nothing proves nothing: each mistake must be found.
func TestCheckerFindsMistakes(t *testing.T) {
	for _, c := range []struct {
		name    string
		bug     bug
		threads []uint32
		want    string
	}{
		{"flag read after the lanes", lateFlag, []uint32{1, 10}, "taken 0 times"},
		{"tail before the item", earlyTail, []uint32{1}, "read before it was written"},
		{"tail before the number", earlyTail, []uint32{1, 1}, "taken"},
		{"claim without compare", plainClaim, []uint32{1, 1}, "taken 2 times"},
		{"flag before the last item", earlyDrained, []uint32{1, 10}, "taken 0 times"},
		{"one lane forgotten", forgottenLane, []uint32{1, 10}, "taken 0 times"},
	} {
		k := newChecker(t, true, c.threads, c.bug)
		k.run([2]Kind{P, P})
		if !strings.Contains(k.broken, c.want) {
			t.Errorf("%s: found %q, want %q", c.name, k.broken, c.want)
		}
	}
}
