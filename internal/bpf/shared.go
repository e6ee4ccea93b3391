package bpf

import (
	"cmp"
	"fmt"
	"os"
	"strconv"
	"strings"
	"structs"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// Control mirrors struct control (shared.h). Writer and reader of each field
// are named there.
type Control struct {
	_           structs.HostLayout
	BootEpochNs uint64
	Armed       uint32
	NsLevel     uint32
	KtimeNs     uint64
	BootNs      uint64
}

// Slot mirrors struct cpu_slot (shared.h), 128 bytes: what one CPU was doing
// when the stop took it, and our worker there.
type Slot struct {
	_         structs.HostLayout
	WorkerTid uint32
	Begun     uint32
	Done      uint32
	_         uint32
	Threads   uint32
	NrRunning uint32
	RanTid    uint32
	RanTgid   uint32
	RanKnown  uint32
	Left      uint32
	StopNs    uint64
	RqClock   uint64
	OpenID    uint64

	DisplacedAt  uint64
	DisplacedTid uint32
	_            uint32
	GoneNs       uint64
	_            [5]uint64
}

// Slots is indexed by CPU number.
type Slots []Slot

// CensusEntry mirrors struct census_entry (stackshot.bpf.c).
type CensusEntry struct {
	_       structs.HostLayout
	Tgid    uint32
	Threads uint32
}

// CensusEntrySize is the wire size of a census entry in bytes.
const CensusEntrySize = int(unsafe.Sizeof(CensusEntry{}))

// Second mirrors struct second (stackshot.bpf.c): what a thread counts in the
// second pass.
type Second struct {
	_        structs.HostLayout
	Tid      uint32
	_        uint32
	Switches uint64 // context switches
	Runtime  uint64 // ns
}

// SecondSize is the wire size of a Second in bytes.
const SecondSize = int(unsafe.Sizeof(Second{}))

// mappings are maps of a collection in memory, by name.
type mappings map[string][]byte

// mapAll maps them, populated and locked, so that nothing faults on them in the
// window: all or, with an error, none.
func mapAll(coll *ebpf.Collection, names ...string) (mappings, error) {
	m := mappings{}
	for _, name := range names {
		mem, err := mmap(coll.Maps[name])
		if err != nil {
			m.unmap()
			return nil, err
		}
		m[name] = mem
	}
	return m, nil
}

func (m mappings) unmap() (err error) {
	for _, mem := range m {
		err = cmp.Or(err, unix.Munmap(mem))
	}
	return err
}

func (o *Objects) mapMemory() (err error) {
	if o.mapped, err = mapAll(o.coll, "control", "cpus", "samples"); err != nil {
		return err
	}
	o.Control = (*Control)(unsafe.Pointer(&o.mapped["control"][0]))
	o.Slots = unsafe.Slice((*Slot)(unsafe.Pointer(&o.mapped["cpus"][0])), o.coll.Maps["cpus"].MaxEntries())
	o.Samples = unsafe.Slice((*CPUSample)(unsafe.Pointer(&o.mapped["samples"][0])), o.coll.Maps["samples"].MaxEntries())
	return nil
}

func mmap(m *ebpf.Map) ([]byte, error) {
	size := pages(uintptr(m.ValueSize()) * uintptr(m.MaxEntries()))
	mem, err := unix.Mmap(m.FD(), 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return nil, fmt.Errorf("%w: map %s into memory (%d bytes): %w", ErrUnsupported, m, size, err)
	}
	return mem, nil
}

func pages(n uintptr) uintptr {
	p := uintptr(os.Getpagesize())
	return (n + p - 1) &^ (p - 1)
}

// StackDepth is the number of kernel frames the kernel unwinds at most for us:
// kernel.perf_event_max_stack, bounded by MaxFrames.
func StackDepth() int {
	text, err := os.ReadFile("/proc/sys/kernel/perf_event_max_stack")
	if err != nil {
		return 127 // the kernel's default
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || n <= 0 {
		return 127
	}
	return min(n, MaxFrames)
}
