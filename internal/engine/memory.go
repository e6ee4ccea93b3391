package engine

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"stackshot/bumpalloc"
	"stackshot/internal/clock"
	"stackshot/kcdata"
	"stackshot/workqueue"
)

// Sizes, in bytes, of our own records with an average stack (internal/bpf/record_*.h).
// The first try's buffer is estimated from them.
const (
	taskEstimate   = 700
	threadEstimate = 1100
	// A task that does not fit costs a whole further stop; memory costs little.
	estimateFactor = 1.25

	// A worker's chunk can hold what one read of an iterator returns at most. Smaller
	// chunks would only mean more reads.
	MinChunk = 8 << 10
	maxChunk = 256 << 10

	// A thread takes 24 bytes in the second pass, and more than 32 times that as
	// a record.
	secondShare = 32

	MinBuffer = 128 << 10
)

// MaxBuffer bounds growth: an eighth of the machine's memory, within what a
// 32-bit offset reaches.
func MaxBuffer() int64 {
	var si unix.Sysinfo_t
	most := int64(64 << 20)
	if err := unix.Sysinfo(&si); err == nil {
		most = max(most, int64(uint64(si.Totalram)*uint64(si.Unit)/8))
	}
	return min(most, 4<<30-1<<20)
}

// Memory holds the records of one try, and the queues. It is mapped, populated and
// locked before the stop. It never becomes smaller.
type Memory struct {
	Data   []byte // arenas
	Ctl    []byte // their control words
	Queues []byte
	Second []byte // of engine pull's second pass
	Alloc  *bumpalloc.Allocator
	Queue  *workqueue.Queues
	Chunk  int
	AMP    bool
	Locked bool // mlock was granted for all of it
	Mapped bool // of BPF maps: theirs to unmap
}

// Size is what one try is made for.
type Size struct {
	Bytes    int64 // records
	Tasks    int   // capacity of the queues
	Chunk    int
	Clusters int
	AMP      bool
}

// Estimate sizes a try for so many tasks and threads. user is how many bytes the user
// side of a thread takes.
func Estimate(tasks, threads, user, clusters, workers int, amp bool) Size {
	thread := threadEstimate + user
	per := taskEstimate + (threads/max(tasks, 1)+1)*thread
	bytes := int64(float64(tasks*taskEstimate+threads*thread) * estimateFactor)
	chunk := min(max(RoundUp(per, 4096), MinChunk), maxChunk)
	return Size{
		Bytes:    max(bytes+int64(workers*2*chunk), MinBuffer),
		Tasks:    tasks + tasks/4 + 64,
		Chunk:    chunk,
		Clusters: clusters,
		AMP:      amp,
	}
}

// Within is s with the buffer size that the user chose, and chunks to fit it.
func (s Size) Within(bytes int64, workers int) Size {
	s.Bytes = bytes
	s.Chunk = min(s.Chunk, max(MinChunk, RoundUp(int(bytes)/(workers*4), 4096)))
	return s
}

func RoundUp(n, to int) int { return (n + to - 1) / to * to }

func NewMemory(s Size) (*Memory, error) {
	m := &Memory{Chunk: s.Chunk, AMP: s.AMP, Locked: true}
	var err error
	for _, r := range []struct {
		mem  *[]byte
		n    int
		what string
	}{
		{&m.Data, int(s.Bytes), "records"},
		{&m.Ctl, bumpalloc.ControlSize(s.Clusters), "arena control"},
		{&m.Queues, workqueue.Size(s.Tasks), "queues"},
		{&m.Second, int(s.Bytes) / secondShare, "second pass"},
	} {
		if *r.mem, err = mapMemory(r.n); err != nil {
			m.Free()
			return nil, fmt.Errorf("map %d bytes for %s: %w", r.n, r.what, err)
		}
		m.Locked = unix.Mlock(*r.mem) == nil && m.Locked
	}
	if err = m.Format(s); err != nil {
		m.Free()
		return nil, err
	}
	return m, nil
}

func (m *Memory) Format(s Size) (err error) {
	if m.Alloc, err = bumpalloc.New(m.Ctl, m.Data, s.Clusters); err == nil {
		m.Queue, err = workqueue.New(m.Queues, s.Tasks, s.AMP, clock.Nanotime)
	}
	return err
}

// mapMemory gives populated memory: nothing faults on it in the window.
func mapMemory(n int) ([]byte, error) {
	n = RoundUp(n, os.Getpagesize())
	return unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_POPULATE)
}

// Free unmaps the memory, if it is not nil and not that of BPF maps.
func (m *Memory) Free() {
	if m == nil || m.Mapped {
		return
	}
	for _, mem := range [][]byte{m.Data, m.Ctl, m.Queues, m.Second} {
		if mem != nil {
			unix.Munmap(mem)
		}
	}
	m.Data, m.Ctl, m.Queues, m.Second = nil, nil, nil, nil
}

func (m *Memory) Reset() {
	m.Alloc.Reset()
	m.Queue.Reset()
}

// smallest is the shortest tail worth taking from a freelist for raw bytes.
const smallest = 512

// newChain is a chain over the arenas, for a worker of one cluster. It adds to spill
// the bytes of chunks from other clusters' arenas. Not to be used after Reset.
func (m *Memory) newChain(cluster int, spill *uint64) *kcdata.Chain {
	grow := func(least int) ([]byte, error) {
		low := uint32(max(least, smallest))
		b, err := m.Alloc.AllocAtLeast(cluster, low, max(low, uint32(m.Chunk)))
		if err != nil {
			return nil, err
		}
		if m.Alloc.ClusterOf(b) != cluster {
			*spill += uint64(b.Len)
		}
		return m.Alloc.Bytes(b), nil
	}
	release := func(tail []byte) { m.Alloc.Free(cluster, m.blockOf(tail)) }
	return kcdata.NewChain(len(m.Data)/4096+256, grow, release)
}

// blockOf turns a piece of arena memory back into its offset.
func (m *Memory) blockOf(b []byte) bumpalloc.Block {
	at := uintptr(unsafe.Pointer(unsafe.SliceData(b))) - uintptr(unsafe.Pointer(unsafe.SliceData(m.Data)))
	return bumpalloc.Block{Off: uint32(at), Len: uint32(len(b))}
}

// AtLeast enlarges a size to that of this memory, so that a session that has grown its
// buffer keeps it. A nil Memory enlarges nothing.
func (m *Memory) AtLeast(s Size) Size {
	if m != nil {
		s.Bytes = max(s.Bytes, int64(len(m.Data)))
		s.Tasks = max(s.Tasks, m.Queue.Capacity())
	}
	return s
}

// Fits reports whether this memory is large enough for s, and divided as s says.
func (m *Memory) Fits(s Size) bool {
	return m != nil && int64(len(m.Data)) >= s.Bytes && m.Queue.Capacity() >= s.Tasks &&
		m.Alloc.Clusters() == s.Clusters && m.AMP == s.AMP
}
