package workqueue

import (
	"errors"
	"fmt"
	"time"
	"unsafe"
)

// The kinds of error. Push runs while the machine stands still, where nothing
// may allocate, so what it returns is made beforehand: test with errors.Is.
var (
	ErrFull      = errors.New("queue is full")                      // as *FullError
	ErrPopulated = errors.New("queue was closed by Populated")      // Push after the last item
	ErrOrder     = errors.New("census index smaller than the last") // Push out of census order
	ErrItem      = errors.New("negative task or thread id")         // Push
	ErrMemory    = errors.New("memory unsuitable")                  // New: too small or misaligned
	ErrCapacity  = errors.New("capacity out of range")              // New
)

// FullError says how many items there was room for. It matches ErrFull.
type FullError struct{ Capacity int }

func (e *FullError) Error() string {
	return fmt.Sprintf("workqueue: %v: capacity %d items", ErrFull, e.Capacity)
}

func (e *FullError) Unwrap() error { return ErrFull }

// Kind is the kind of CPU a consumer runs on; the numbers are those of the file
// format.
type Kind uint32

const (
	SMP Kind = 0 // all CPUs alike
	E   Kind = 1 // efficiency core: easy items first
	P   Kind = 2 // performance core: hard items first
)

// Queues are the easy and the hard queue over one piece of shared memory. Push
// and Populated belong to one producer; Next is for all workers at once; Reset
// is for nobody beside it.
type Queues struct {
	f       *fixed
	items   []Item
	numbers [lanes][]uint32
	queues  int // lanes in use; own copy, the memory may be written by others
	full    *FullError
	now     func() int64
	mem     []byte // keeps the memory reachable
}

// Option changes a default of New.
type Option func(*Queues)

// WithClock sets the clock that waiting is measured with and deadlines are
// given in, ns. It must not allocate, lock or sleep, and all workers call it at
// once. The default counts CLOCK_MONOTONIC from New by time.Since: in the Go
// runtime that is a vDSO read, no system call. unix.ClockGettime is not used
// because it always enters the kernel through the Go scheduler's hooks. Who
// shares deadlines with the in-kernel engine (absolute CLOCK_MONOTONIC) reads
// that clock once beforehand and adds time.Since from there.
func WithClock(now func() int64) Option { return func(q *Queues) { q.now = now } }

// New formats mem for capacity items, on amp in two queues, else in one. mem
// needs Size(capacity) bytes at an 8-byte boundary (128 if the cache-line pads
// are to do their work); its contents are lost. Errors: ErrCapacity, ErrMemory.
func New(mem []byte, capacity int, amp bool, opts ...Option) (*Queues, error) {
	need := Size(capacity)
	if need == 0 {
		return nil, fmt.Errorf("workqueue: %d items: %w", capacity, ErrCapacity)
	}
	if len(mem) < need {
		return nil, fmt.Errorf("workqueue: memory of %d bytes, need %d: %w", len(mem), need, ErrMemory)
	}
	if at := uintptr(unsafe.Pointer(&mem[0])); at%8 != 0 {
		return nil, fmt.Errorf("workqueue: memory at 0x%x, need an 8-byte boundary: %w", at, ErrMemory)
	}
	start := time.Now()
	q := &Queues{queues: 1, full: &FullError{capacity}, mem: mem}
	q.now = func() int64 { return int64(time.Since(start)) }
	if amp {
		q.queues = 2
	}
	for _, o := range opts {
		o(q)
	}
	q.f = (*fixed)(unsafe.Pointer(&mem[0]))
	q.items, q.numbers = split(mem, capacity)
	q.f.header.version.Store(layoutVersion)
	q.f.header.capacity.Store(uint32(capacity))
	q.f.header.queues.Store(uint32(q.queues))
	q.Reset()
	q.f.header.magic.Swap(layoutMagic) // last: who finds it finds the rest
	return q, nil
}

// Reset empties the queues and zeroes the counters. No producer and no consumer
// may be inside any method.
func (q *Queues) Reset() {
	q.f.producer.pushed.Store(0)
	q.f.producer.refused.Store(0)
	for i := range q.f.slots {
		s := &q.f.slots[i]
		s.waited.Store(0)
		s.waits.Store(0)
		s.taken.Store(0)
	}
	for i := range q.f.lanes {
		q.f.lanes[i].head.Store(0)
		q.f.lanes[i].tail.Store(0)
	}
	q.f.finish.populated.Swap(0)
}

// Now reads the clock that deadlines of Next are given in, ns.
func (q *Queues) Now() int64 { return q.now() }

// Capacity is the number of items there is room for, both queues together.
func (q *Queues) Capacity() int { return len(q.items) }

// Waited is the time that the worker in slot spent on empty queues that were
// not yet populated, ns; 0 for a slot out of range.
func (q *Queues) Waited(slot int) uint64 {
	if uint(slot) >= MaxSlots {
		return 0
	}
	return q.f.slots[slot].waited.Load()
}

// Waits is how often the worker in slot had to wait; 0 for a slot out of range.
func (q *Queues) Waits(slot int) uint64 {
	if uint(slot) >= MaxSlots {
		return 0
	}
	return q.f.slots[slot].waits.Load()
}

// Taken is the number of items that slot claimed; 0 for a slot out of range.
func (q *Queues) Taken(slot int) uint64 {
	if uint(slot) >= MaxSlots {
		return 0
	}
	return q.f.slots[slot].taken.Load()
}
