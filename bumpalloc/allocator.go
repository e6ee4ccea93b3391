package bumpalloc

import (
	"fmt"
	"unsafe"
)

// Block is a piece of data memory: Off and Len in bytes. Blocks that AllocAtLeast
// returns are aligned to Align at both ends; the blocks given to Free may be
// any part of one.
type Block struct{ Off, Len uint32 }

// Allocator hands out data memory. Every method but Reset is safe for all
// workers at once; none of them but Err allocates, sleeps or locks a Go mutex.
type Allocator struct {
	head   *header
	arenas []*arena
	base   []uint32 // own copies of the constant words: a mapped page may be written by others
	size   []uint32
	stride uint32 // size of every arena but the last
	spin   int    // how often a worker tries for a lock or a bump word before ErrBusy
	window int    // how many freelist entries are compared for the best fit
	data   []byte
	ctl    []byte // keeps the control memory reachable
}

const (
	// Some 30-100 µs: longer than a walk over the comparison window, and far shorter
	// than any pause budget.
	spinTurns = 1 << 16
	// After so many entries the best one so far is taken. If none of them fits, the
	// first later one that does is taken, so a fit is never missed.
	fitWindow = 256
)

// New formats ctl and splits data evenly into one arena per cluster; what the
// division leaves goes to the last arena. ctl needs ControlSize(clusters) bytes
// at an 8-byte boundary (a 128-byte boundary if the cache-line pads are to do
// their work), data a 16-byte boundary and at least 64 bytes per cluster, at
// most 4 GiB - 16. The contents of both are lost. Errors: ErrCluster, ErrMemory.
func New(ctl, data []byte, clusters int) (*Allocator, error) {
	need := ControlSize(clusters)
	if need == 0 {
		return nil, fmt.Errorf("bumpalloc: %d clusters: %w", clusters, ErrCluster)
	}
	if err := checkMemory("control", ctl, uint64(need), uint64(need), 8); err != nil {
		return nil, err
	}
	if err := checkMemory("data", data, uint64(clusters)*minArena, maxData, Align); err != nil {
		return nil, err
	}
	a := &Allocator{spin: spinTurns, window: fitWindow, ctl: ctl, data: data[:len(data)&^(Align-1)]}
	a.format(clusters)
	return a, nil
}

// checkMemory says whether mem has at least low and, unless low == high, at
// most high bytes at the boundary.
func checkMemory(name string, mem []byte, low, high uint64, boundary uintptr) error {
	n := uint64(len(mem))
	if n < low || low != high && n > high {
		return fmt.Errorf("bumpalloc: %s memory of %d bytes, need %d to %d: %w", name, n, low, high, ErrMemory)
	}
	if at := uintptr(unsafe.Pointer(&mem[0])); at%boundary != 0 {
		return fmt.Errorf("bumpalloc: %s memory at 0x%x, need a %d-byte boundary: %w", name, at, boundary, ErrMemory)
	}
	return nil
}

// format lays the control words out and makes them ready.
func (a *Allocator) format(clusters int) {
	a.head = (*header)(unsafe.Pointer(&a.ctl[0]))
	total := uint64(len(a.data))
	a.stride = uint32(total/uint64(clusters)) &^ (Align - 1)
	for i := range clusters {
		at := int(unsafe.Sizeof(header{})) + i*int(unsafe.Sizeof(arena{}))
		w := (*arena)(unsafe.Pointer(&a.ctl[at]))
		base, size := uint32(i)*a.stride, a.stride
		if i == clusters-1 {
			size = uint32(total - uint64(base))
		}
		a.arenas, a.base, a.size = append(a.arenas, w), append(a.base, base), append(a.size, size)
	}
	a.head.version.Store(layoutVersion)
	a.head.clusters.Store(uint32(clusters))
	a.head.dataSize.Store(total)
	a.Reset()
	a.head.magic.Swap(layoutMagic) // last: who finds it finds the rest
}

// Reset takes back every block, breaks every lock and zeroes every counter. No
// worker may be inside any method: a lock left behind by a worker that died
// holding it is the reason it is broken and not taken.
func (a *Allocator) Reset() {
	a.head.epoch.Add(1)
	for i, w := range a.arenas {
		*w = arena{}
		w.base.Store(a.base[i])
		w.size.Store(a.size[i])
		w.lock.Swap(0)
	}
}

// Bytes is the memory of b, capped at its end, or nil if b is not inside data.
func (a *Allocator) Bytes(b Block) []byte {
	end := uint64(b.Off) + uint64(b.Len)
	if end > uint64(len(a.data)) {
		return nil
	}
	return a.data[b.Off:end:end]
}

// ClusterOf is the cluster whose arena a block lies in.
func (a *Allocator) ClusterOf(b Block) int { return a.arenaOf(b.Off) }

// Clusters is the number of arenas.
func (a *Allocator) Clusters() int { return len(a.arenas) }

// arenaOf is the arena that offset off, inside data, belongs to.
func (a *Allocator) arenaOf(off uint32) int {
	return min(int(off/a.stride), len(a.arenas)-1)
}
