package bpf

import (
	"fmt"
	"iter"
	"runtime"
	"unsafe"

	"github.com/cilium/ebpf"

	"stackshot/bumpalloc"
	"stackshot/workqueue"
)

// TrapConfig is the size of what the trap writes to; fixed when it is loaded.
type TrapConfig struct {
	Bytes int // records
	Items int // capacity of the queues
}

// Trap is the program that stops a CPU and records, with its memory mapped. It uses the
// control words and the slots of the Objects that it was loaded with, so these must stay
// open.
type Trap struct {
	Program *ebpf.Program
	Stop    *Stop
	Workers []TrapWorker // by CPU number
	Parts   []TrapPart   // by item number
	Pieces  []TrapPiece
	Seconds []TrapSecond // of the second pass, Stop.Seconds of them
	Asked   []uint64     // tgids to record, Stop.Asked of them
	Traces  []TraceRing  // by CPU number
	Region  []byte       // of bumpalloc: data,
	Arenas  []byte       // and control words
	Queue   []byte       // of workqueue
	Config  TrapConfig

	coll   *ebpf.Collection
	mapped mappings
}

// MaxAsked is how many tasks a capture of chosen tasks may name.
const MaxAsked = 1024

// How many changed threads the second pass can list.
const secondsRoom = 4096

// Bytes after the region, for a write that begins at its end and whose length the
// verifier does not know (sink_region.h, REGION_SLACK).
const regionSlack = 20 << 10

// A further piece begins with each new chunk, and few chunks are smaller than this.
const bytesPerPiece = 2048

// LoadTrap loads the trap beside o, configured as o was. Errors are of kind
// ErrUnsupported and contain the kernel's own reason.
func (o *Objects) LoadTrap(cfg TrapConfig) (*Trap, error) {
	spec, err := o.config.specs().Trap()
	if err != nil {
		return nil, fmt.Errorf("committed object: %w", err)
	}
	if err := configure(spec, o.config); err != nil {
		return nil, err
	}
	pieces := cfg.Bytes/bytesPerPiece + 1024
	if err := setValues(spec, map[string]uint32{
		"cfg_region_bytes": uint32(cfg.Bytes),
		"cfg_queue_items":  uint32(cfg.Items),
		"cfg_pieces":       uint32(pieces),
	}); err != nil {
		return nil, err
	}
	spec.Maps["region"].ValueSize = uint32(cfg.Bytes) + regionSlack
	spec.Maps["queue"].ValueSize = uint32(workqueue.Size(cfg.Items))
	spec.Maps["workers"].MaxEntries = uint32(o.config.CPUs)
	spec.Maps["parts"].MaxEntries = uint32(cfg.Items)
	spec.Maps["pieces"].MaxEntries = uint32(pieces)
	spec.Maps["hints"].MaxEntries = uint32(cfg.Items)
	spec.Maps["seconds"].MaxEntries = secondsRoom
	spec.Maps["asked"].MaxEntries = MaxAsked
	spec.Maps["traces"].MaxEntries = uint32(o.config.CPUs)
	coll, err := newCollection(spec, map[string]*ebpf.Map{"controls": o.coll.Maps["controls"], "cpus": o.coll.Maps["cpus"]})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	t := &Trap{Program: coll.Programs["trap"], Config: cfg, coll: coll}
	if err := t.mapMemory(o.config.CPUs, pieces); err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

func (t *Trap) mapMemory(cpus, pieces int) error {
	mem, err := mapAll(t.coll, "stops", "workers", "parts", "pieces", "region", "arenas", "queue", "seconds", "asked", "traces")
	if err != nil {
		return err
	}
	t.mapped = mem
	t.Stop = (*Stop)(unsafe.Pointer(&mem["stops"][0]))
	t.Workers = unsafe.Slice((*TrapWorker)(unsafe.Pointer(&mem["workers"][0])), cpus)
	t.Parts = unsafe.Slice((*TrapPart)(unsafe.Pointer(&mem["parts"][0])), t.Config.Items)
	t.Pieces = unsafe.Slice((*TrapPiece)(unsafe.Pointer(&mem["pieces"][0])), pieces)
	t.Seconds = unsafe.Slice((*TrapSecond)(unsafe.Pointer(&mem["seconds"][0])), secondsRoom)
	t.Asked = unsafe.Slice((*uint64)(unsafe.Pointer(&mem["asked"][0])), MaxAsked)
	t.Traces = unsafe.Slice((*TraceRing)(unsafe.Pointer(&mem["traces"][0])), cpus)
	t.Region = mem["region"][:t.Config.Bytes]
	t.Arenas = mem["arenas"][:bumpalloc.ControlSize(bumpalloc.MaxClusters)]
	t.Queue = mem["queue"][:workqueue.Size(t.Config.Items)]
	return nil
}

// Close unmaps the memory and closes program and maps.
func (t *Trap) Close() error {
	if t.coll == nil {
		return nil
	}
	err := t.mapped.unmap()
	t.coll.Close()
	*t = Trap{} // the collection keeps the constants mapped too
	return err
}

// Map gives a map by its name in the C source; nil: there is none.
func (t *Trap) Map(name string) *ebpf.Map { return t.coll.Maps[name] }

// KeepAlive is Objects.KeepAlive for the trap.
func (t *Trap) KeepAlive() { runtime.KeepAlive(t.coll) }

// Stream gives the bytes of a part, piece by piece.
func (t *Trap) Stream(p *TrapPart) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for off, end := range Chain(p, t.Pieces, uint64(len(t.Region))) {
			if !yield(t.Region[off:end:end]) {
				return
			}
		}
	}
}

// Chain gives where the pieces of a part begin and end in a region of size bytes. It ends
// early at a piece that lies outside the region, and when links form a cycle.
func Chain(p *TrapPart, pieces []TrapPiece, size uint64) iter.Seq2[uint64, uint64] {
	return func(yield func(off, end uint64) bool) {
		off, n, more := p.Off, p.Len, p.More
		for range len(pieces) + 1 {
			end := uint64(off) + uint64(n)
			if end > size || n > 0 && !yield(uint64(off), end) {
				return
			}
			if more == 0 || int(more) > len(pieces) {
				return
			}
			next := &pieces[more-1]
			off, n, more = next.Off, next.Len, next.More
		}
	}
}
