package bumpalloc

import (
	"sync/atomic"
	"unsafe"
)

// Sizes of the shared layout. doc.go draws them; layout_test.go holds the
// structs below against that drawing.
const (
	Align       = 16         // every block starts and ends on a multiple of this, bytes
	MaxClusters = 256        // more than any machine has last-level caches
	MaxSize     = 1<<31 - 16 // largest request, bytes; above is a negative int by mistake

	line          = 128        // bytes per cache-line group: two x86 lines (fetched in pairs), one arm64 line at most
	entrySize     = 16         // freelist entry header, bytes; equal to Align, so any aligned remainder holds one
	minArena      = 64         // bytes; less cannot hold one item and its tail
	maxData       = 1<<32 - 16 // offsets are 32 bits and Off+1 must be too
	layoutMagic   = 0x41504d42 // "BMPA" read as little-endian
	layoutVersion = 1
	sealMagic     = 0x7a11ed00 // high half of an entry's seal, xor epoch
)

// header opens the control memory. Written by New and Reset only, while no
// worker runs; read by everybody.
type header struct {
	magic    atomic.Uint32 // layoutMagic
	version  atomic.Uint32 // layoutVersion
	clusters atomic.Uint32 // number of arena structs that follow
	epoch    atomic.Uint32 // grows with every New and Reset: an entry of an earlier round has no valid seal
	dataSize atomic.Uint64 // bytes of data memory covered by the arenas
	_        [line - 24]byte
}

// arena is one cluster's control words, four line groups, one per writer set.
type arena struct {
	// Constant after New. Go keeps its own copy and never reads these back:
	// they are here for the in-kernel engine.
	base atomic.Uint32 // offset of the arena in data, bytes
	size atomic.Uint32 // bytes
	_    [line - 8]byte

	// Bump words. Written by the worker of any cluster that takes from here.
	used    atomic.Uint32 // bytes handed out from base on; grows by compare-and-swap, never past size
	_       uint32
	spilled atomic.Uint64 // bytes of used that went to other clusters; written by the taker after its swap
	_       [line - 16]byte

	// Freelist words. Written only by the holder of lock, but fault, which is
	// set once by compare-and-swap by whoever finds it.
	lock    atomic.Uint32 // 0 free, else 1 + cluster of the holder
	head    atomic.Uint32 // link of the first entry, 0: none
	entries atomic.Uint32 // number of entries on the list
	_       uint32
	listed  atomic.Uint64 // bytes on the list
	reused  atomic.Uint64 // bytes ever taken off the list
	fault   atomic.Uint64 // first fault found: reason<<32 | offending word; 0: none
	_       [line - 40]byte

	// Counters of this cluster as a taker. Written by its own workers only.
	allocs  atomic.Uint64 // requests served
	frees   atomic.Uint64 // blocks given back
	freed   atomic.Uint64 // bytes given back, slivers and refused pushes included
	spill   atomic.Uint64 // bytes taken from other clusters' arenas
	foreign atomic.Uint64 // bytes taken from other clusters' freelists
	busy    atomic.Uint64 // times a spin ran out
	refused atomic.Uint64 // requests that ended in an error
	_       [line - 56]byte
}

// ControlSize is the number of bytes of control memory that New needs for so
// many clusters, or 0 if clusters is not in 1..MaxClusters.
func ControlSize(clusters int) int {
	if clusters < 1 || clusters > MaxClusters {
		return 0
	}
	return int(unsafe.Sizeof(header{})) + clusters*int(unsafe.Sizeof(arena{}))
}

// A link names a freelist entry: its offset with the lowest bit set, so that
// zero-filled memory is an empty list and offset 0 is still a place.
func toLink(off uint32) uint32 { return off | 1 }

// word is the 64-bit word at off, which the caller has checked: off is a
// multiple of 8 and the word lies inside data.
func (a *Allocator) word(off uint32) *uint64 {
	return (*uint64)(unsafe.Pointer(&a.data[off]))
}

// seal is what the second word of an entry at off holds while it is listed.
func (a *Allocator) seal(off uint32) uint64 {
	return uint64(sealMagic^a.head.epoch.Load())<<32 | uint64(toLink(off))
}

// roundUp rounds to a multiple of Align; n is at most MaxSize.
func roundUp(n uint32) uint32 { return (n + Align - 1) &^ (Align - 1) }
