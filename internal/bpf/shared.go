package bpf

import (
	"cmp"
	"fmt"
	"os"
	"strconv"
	"strings"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// Structures that the programs and Go both use. bpf2go makes them from the committed
// objects' own type information, so they cannot differ from the C. The headers named
// here say what each field is and who may write it.
type (
	Control     = objectControl        // shared.h
	Slot        = objectCpuSlot        // shared.h: what a CPU was doing when the stop took it, and our worker there
	CensusEntry = objectCensusEntry    // stackshot.bpf.c
	Second      = objectSecond         // stackshot.bpf.c: what a thread counts in the second pass; Runtime in ns
	CPUSample   = objectCpuSample      // sample.h, with the states of Wanted
	Stop        = trapObjectStop       // trap.h; the first four words are stop.Words of internal/engine/stop/try.go
	TrapWorker  = trapObjectTrapWorker // trap.h; times are CLOCK_MONOTONIC ns, 0: did not get there
	TrapPart    = trapObjectTrapPart   // trap.h: what came of one item, by its number in the queue
	TrapPiece   = trapObjectTrapPiece  // trap.h
	TrapSecond  = trapObjectTrapSecond // trap.h: what a thread of a changed part counts in the second pass
	TraceEvent  = trapObjectTraceEvent // trace.h
	TraceRing   = trapObjectTraceRing  // trace.h: one CPU's last events
)

// Slots is indexed by CPU number.
type Slots []Slot

// Sizes of what the iterators return, bytes.
const (
	CensusEntrySize = int(unsafe.Sizeof(CensusEntry{}))
	SecondSize      = int(unsafe.Sizeof(Second{}))
)

// TraceEvents is how many events a CPU's ring holds.
const TraceEvents = uint32(len(TraceRing{}.Events))

// Bits of TrapWorker.Level: what was off while it recorded.
const (
	PreemptionOff = 1
	InterruptsOff = 2
)

// States and flags of a part (trap.h, enum part_state).
const (
	PartTaken    = 0 // its worker has not come back from it
	PartWhole    = 1
	PartVanished = 2
	PartCut      = 3 // the pause was spent
	PartNoRoom   = 4

	PartOpened = 1 // it has the begin of the task's container
	PartClosed = 2 // it has its end
)

// Verdicts of the second pass on a part (trap.h, enum part_verdict). A part without
// one of these was not compared, or there was no room for its threads.
const (
	PartUnchanged = 1
	PartChanged   = 2 // its threads are in Trap.Seconds
	PartGone      = 4
)

// mappings are the memory of BPF maps, by the maps' names.
type mappings map[string][]byte

// mapAll maps the named BPF maps into memory, populated, so that no access faults in the
// window. With an error it maps none.
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
	if o.mapped, err = mapAll(o.coll, "controls", "cpus", "samples"); err != nil {
		return err
	}
	o.Control = (*Control)(unsafe.Pointer(&o.mapped["controls"][0]))
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

// StackDepth is the largest number of kernel frames that the kernel unwinds:
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
