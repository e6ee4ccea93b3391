package workqueue

import (
	"errors"
	"fmt"
	"unsafe"
)

// Push runs while the machine stands still, where nothing may allocate, so it returns
// these errors as they are.
var (
	ErrFull      = errors.New("queue is full")                      // Push
	ErrPopulated = errors.New("queue was closed by Populated")      // Push after the last item
	ErrOrder     = errors.New("census index smaller than the last") // Push out of census order
	ErrItem      = errors.New("negative task or thread id")         // Push
	ErrMemory    = errors.New("memory unsuitable")                  // New: too small or misaligned
	ErrCapacity  = errors.New("capacity out of range")              // New
)

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
	queues  int          // lanes in use; own copy, the memory may be written by others
	now     func() int64 // the clock: CLOCK_MONOTONIC or another, ns
	mem     []byte       // keeps the memory reachable
}

// New formats mem for capacity items, on amp in two queues, else in one. mem
// needs Size(capacity) bytes at an 8-byte boundary (128 if the cache-line pads
// are to do their work); its contents are lost. now is the clock in which deadlines are
// given and waits are measured, ns. All workers call it at once, so it must not
// allocate, lock or sleep. Errors: ErrCapacity, ErrMemory.
func New(mem []byte, capacity int, amp bool, now func() int64) (*Queues, error) {
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
	q := &Queues{queues: 1, now: now, mem: mem}
	if amp {
		q.queues = 2
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
	q.f.producer = producer{}
	clear(q.f.slots[:])
	clear(q.f.lanes[:])
	q.f.finish.populated.Swap(0)
}

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
