package snapshot

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"stackshot/bumpalloc"
	"stackshot/kcdata"
	"stackshot/workqueue"
)

// Sizes, in bytes, of our own records with an average stack (record_*.h): what
// the first try's buffer is estimated from.
const (
	taskEstimate   = 700
	threadEstimate = 1100
	// Reading a task that does not fit costs a whole stop, memory costs little.
	estimateFactor = 1.25

	// A worker's chunk holds at least what one read of an iterator can return
	// in full; below that, reads only become more.
	minChunk = 8 << 10
	maxChunk = 256 << 10

	// A thread takes 24 bytes in the second pass, and more than 32 times that as
	// a record.
	secondShare = 32

	minBuffer = 128 << 10
)

// maxBuffer bounds growth: an eighth of the machine's memory, within what a
// 32-bit offset reaches.
func maxBuffer() int64 {
	var si unix.Sysinfo_t
	most := int64(64 << 20)
	if err := unix.Sysinfo(&si); err == nil {
		most = max(most, int64(uint64(si.Totalram)*uint64(si.Unit)/8))
	}
	return min(most, 4<<30-1<<20)
}

// memory is what the records of one try are written to, and the queues. It is
// mapped, populated and locked before the stop and stays as large as it once
// was.
type memory struct {
	data   []byte // arenas
	ctl    []byte // their control words
	queues []byte
	second []byte // of engine pull's second pass
	alloc  *bumpalloc.Allocator
	queue  *workqueue.Queues
	chunk  int
	amp    bool
	locked bool // mlock was granted for all of it
	mapped bool // of BPF maps: theirs to unmap
}

// size is what one try is made for.
type size struct {
	bytes    int64 // records
	tasks    int   // capacity of the queues
	chunk    int
	clusters int
	amp      bool
}

// estimate sizes a try from the number of tasks and threads; user is what a
// thread's user stack may take.
func estimate(tasks, threads, user, clusters, workers int, amp bool) size {
	thread := threadEstimate + user
	per := taskEstimate + (threads/max(tasks, 1)+1)*thread
	bytes := int64(float64(tasks*taskEstimate+threads*thread) * estimateFactor)
	chunk := min(max(roundUp(per, 4096), minChunk), maxChunk)
	return size{
		bytes:    max(bytes+int64(workers*2*chunk), minBuffer),
		tasks:    tasks + tasks/4 + 64,
		chunk:    chunk,
		clusters: clusters,
		amp:      amp,
	}
}

// within fits a size that the user chose.
func (s size) within(bytes int64, workers int) size {
	s.bytes = bytes
	s.chunk = min(s.chunk, max(minChunk, roundUp(int(bytes)/(workers*4), 4096)))
	return s
}

func roundUp(n, to int) int { return (n + to - 1) / to * to }

func newMemory(s size) (*memory, error) {
	m := &memory{chunk: s.chunk, amp: s.amp, locked: true}
	var err error
	for _, r := range []struct {
		mem  *[]byte
		n    int
		what string
	}{
		{&m.data, int(s.bytes), "records"},
		{&m.ctl, bumpalloc.ControlSize(s.clusters), "arena control"},
		{&m.queues, workqueue.Size(s.tasks), "queues"},
		{&m.second, int(s.bytes) / secondShare, "second pass"},
	} {
		if *r.mem, err = mapMemory(r.n); err != nil {
			m.free()
			return nil, fmt.Errorf("map %d bytes for %s: %w", r.n, r.what, err)
		}
		m.locked = unix.Mlock(*r.mem) == nil && m.locked
	}
	if err = m.format(s); err != nil {
		m.free()
		return nil, err
	}
	return m, nil
}

func (m *memory) format(s size) (err error) {
	if m.alloc, err = bumpalloc.New(m.ctl, m.data, s.clusters); err == nil {
		m.queue, err = workqueue.New(m.queues, s.tasks, s.amp, workqueue.WithClock(nanotime))
	}
	return err
}

// mapMemory gives populated memory: nothing faults on it in the window.
func mapMemory(n int) ([]byte, error) {
	n = roundUp(n, os.Getpagesize())
	return unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_POPULATE)
}

func (m *memory) free() {
	if m.mapped {
		return
	}
	for _, mem := range [][]byte{m.data, m.ctl, m.queues, m.second} {
		if mem != nil {
			unix.Munmap(mem)
		}
	}
	m.data, m.ctl, m.queues, m.second = nil, nil, nil, nil
}

func (m *memory) reset() {
	m.alloc.Reset()
	m.queue.Reset()
}

// smallest is the shortest tail worth taking from a freelist for raw bytes.
const smallest = 512

// newChain is a chunk list over the arenas, for a worker of one cluster. spill
// counts bytes from other clusters' arenas. Not to be used after reset.
func (m *memory) newChain(cluster int, spill *uint64) *kcdata.Chain {
	grow := func(least int) ([]byte, error) {
		low := uint32(max(least, smallest))
		b, err := m.alloc.AllocAtLeast(cluster, low, max(low, uint32(m.chunk)))
		if err != nil {
			return nil, err
		}
		if m.alloc.ClusterOf(b) != cluster {
			*spill += uint64(b.Len)
		}
		return m.alloc.Bytes(b), nil
	}
	release := func(tail []byte) { m.alloc.Free(cluster, m.blockOf(tail)) }
	return kcdata.NewChain(len(m.data)/4096+256, grow, release)
}

// blockOf turns a piece of arena memory back into its offset.
func (m *memory) blockOf(b []byte) bumpalloc.Block {
	at := uintptr(unsafe.Pointer(unsafe.SliceData(b))) - uintptr(unsafe.Pointer(unsafe.SliceData(m.data)))
	return bumpalloc.Block{Off: uint32(at), Len: uint32(len(b))}
}

// atLeast enlarges a size to what this memory already is: a session that has
// grown stays grown.
func (m *memory) atLeast(s size) size {
	if m != nil {
		s.bytes = max(s.bytes, int64(len(m.data)))
		s.tasks = max(s.tasks, m.queue.Capacity())
	}
	return s
}

// fits says that this memory is enough for s.
func (m *memory) fits(s size) bool {
	return m != nil && int64(len(m.data)) >= s.bytes && m.queue.Capacity() >= s.tasks &&
		m.alloc.Clusters() == s.clusters && m.amp == s.amp
}
