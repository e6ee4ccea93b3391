package workqueue

import (
	"sync/atomic"
	"unsafe"
)

// Sizes of the shared layout. doc.go draws them; layout_test.go holds the
// structs below against that drawing.
const (
	MaxSlots    = 1024    // CPU slots; a slot is one worker's own line
	MaxCapacity = 1 << 26 // items; more tasks than pid_max allows

	line          = 128        // bytes per line group: two x86 lines (fetched in pairs), one arm64 line at most
	slotLine      = 64         // bytes per slot: written once an item, by its own CPU only
	lanes         = 2          // lane 0 easy, lane 1 hard
	layoutMagic   = 0x51574b53 // "SKWQ" read as little-endian
	layoutVersion = 1
)

// Item is one piece of work: a whole task, or a run of one task's threads.
// Written by the producer before the tail that covers it; constant afterwards.
type Item struct {
	Index    uint32 // census index of the task; parts of one task share it
	Tgid     int32  // task; 0 is the kernel's idle task
	FirstTid int32  // first thread of the part, 0: the whole task
	Count    uint32 // threads: of the task, or of the part
}

// header opens the memory. Constant after New.
type header struct {
	magic    atomic.Uint32 // layoutMagic
	version  atomic.Uint32 // layoutVersion
	capacity atomic.Uint32 // items
	queues   atomic.Uint32 // lanes in use: 1 on SMP, 2 on AMP
	_        [line - 16]byte
}

// producer words. Written by the producer only, never read by a consumer.
type producer struct {
	pushed  atomic.Uint32 // items in the item array
	refused atomic.Uint32 // items that did not fit
	_       [line - 8]byte
}

// finish is alone in its line because idle consumers poll it.
type finish struct {
	populated atomic.Uint32 // 1 once the last item is pushed; written by the producer, last of all
	_         [line - 4]byte
}

// lane is one queue: ends of its array of item numbers. Each end has its line,
// or every claim would take the line that the producer publishes in.
type lane struct {
	tail atomic.Uint32 // numbers published; written by the producer only, grows
	_    [line - 4]byte
	head atomic.Uint32 // numbers claimed; grows by compare-and-swap, any consumer, never past tail
	_    [line - 4]byte
}

// slot is what one worker counts. Written by the worker in that slot only.
type slot struct {
	waited atomic.Uint64 // time spent on empty queues before populated, ns
	waits  atomic.Uint64 // times it had to wait
	taken  atomic.Uint64 // items claimed
	_      [slotLine - 24]byte
}

// fixed is everything of constant size; the arrays follow.
type fixed struct {
	header   header
	producer producer
	finish   finish
	lanes    [lanes]lane
	slots    [MaxSlots]slot
}

// Size is the number of bytes New needs for so many items, or 0 if capacity is
// not in 1..MaxCapacity.
func Size(capacity int) int {
	if capacity < 1 || capacity > MaxCapacity {
		return 0
	}
	return int(unsafe.Sizeof(fixed{})) + capacity*(int(unsafe.Sizeof(Item{}))+lanes*4)
}

// split lays the three arrays over what follows the fixed part.
func split(mem []byte, capacity int) (items []Item, numbers [lanes][]uint32) {
	at := unsafe.Sizeof(fixed{})
	items = unsafe.Slice((*Item)(unsafe.Pointer(&mem[at])), capacity)
	at += uintptr(capacity) * unsafe.Sizeof(Item{})
	for i := range numbers {
		numbers[i] = unsafe.Slice((*uint32)(unsafe.Pointer(&mem[at])), capacity)
		at += uintptr(capacity) * 4
	}
	return items, numbers
}
