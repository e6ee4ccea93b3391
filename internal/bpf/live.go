package bpf

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// Mapped gives the memory of a map of the trap, whole pages, by the map's name in the C source:
// "region", "parts", "pieces", "queue", "stops", "workers". nil: there is none.
func (t *Trap) Mapped(name string) []byte { return t.mapped[name] }

// MappedSlots gives the memory of the slots, whole pages.
func (o *Objects) MappedSlots() []byte { return o.mapped["cpus"] }

// KernelMemory is memory of the kernel's, mapped into this process. A dump that leaves out the memory
// of processes has it all the same.
type KernelMemory struct {
	Bytes []byte // whole pages, zeros
	m     *ebpf.Map
}

// NewKernelMemory makes room for n bytes. It is a BPF array of one value.
func NewKernelMemory(n int) (*KernelMemory, error) {
	m, err := ebpf.NewMap(&ebpf.MapSpec{
		Name: "stackshot_live", Type: ebpf.Array, KeySize: 4, ValueSize: uint32(pages(uintptr(n))), MaxEntries: 1, Flags: unix.BPF_F_MMAPABLE,
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	mem, err := mmap(m)
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return &KernelMemory{mem, m}, nil
}

func (k *KernelMemory) Close() error {
	err := errors.Join(unix.Munmap(k.Bytes), k.m.Close())
	k.Bytes = nil
	return err
}

// LiveStops is the map of an armed resident in which a panic finds the stops of captures
// (panic.h, panic_live), with what one session entered there.
type LiveStops struct {
	m    *ebpf.Map
	mine uint32 // id of the map of the stop that was entered; 0: none
}

// OpenLiveStops opens the map by its id. It refuses a map that is none of ours.
func OpenLiveStops(id uint32) (*LiveStops, error) {
	m, err := ebpf.NewMapFromID(ebpf.MapID(id))
	if err != nil {
		return nil, fmt.Errorf("BPF map %d: %w", id, err)
	}
	info, err := m.Info()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("BPF map %d: %w", id, err), m.Close())
	}
	if info.Name != "panic_live" || info.Type != ebpf.ArrayOfMaps || info.KeySize != 4 || info.MaxEntries == 0 || info.MaxEntries > 64 {
		return nil, errors.Join(fmt.Errorf("BPF map %d is %q, %v of %d: want panic_live of a resident that has armed this machine", id, info.Name, info.Type, info.MaxEntries), m.Close())
	}
	return &LiveStops{m: m}, nil
}

// Enter puts the stop of a trap into the map, if it is not there: in place of what was entered
// before, else into the first slot that is free, else into one by the id of the trap's map.
// Captures of a machine come one after the other; so a session whose stop another one
// displaced enters it again before it stops the machine. A change takes some
// milliseconds: the kernel waits until no program uses what stood there before.
func (l *LiveStops) Enter(t *Trap) error {
	stops := t.coll.Maps["stops"]
	id, err := idOf(stops)
	if err != nil {
		return err
	}
	most := l.m.MaxEntries()
	slot, rank := id%most, 0
	for i := range most {
		switch there := l.at(i); {
		case there == id:
			l.mine = id
			return nil
		case there == l.mine && l.mine != 0:
			slot, rank = i, 2
		case there == 0 && rank == 0:
			slot, rank = i, 1
		}
	}
	if err := l.m.Put(slot, stops); err != nil {
		return fmt.Errorf("enter a stop into panic_live: %w", err)
	}
	l.mine = id
	return nil
}

// Has reports whether the stop of a trap is in the map.
func (l *LiveStops) Has(t *Trap) bool {
	id, err := idOf(t.coll.Maps["stops"])
	for i := range l.m.MaxEntries() {
		if err == nil && l.at(i) == id {
			return true
		}
	}
	return false
}

// Leave takes out what was entered, if it is still there.
func (l *LiveStops) Leave() error {
	for i := range l.m.MaxEntries() {
		if l.mine != 0 && l.at(i) == l.mine {
			l.mine = 0
			return l.m.Delete(i)
		}
	}
	return nil
}

func (l *LiveStops) Close() error { return l.m.Close() }

// at is the id of the map in a slot; 0: none.
func (l *LiveStops) at(slot uint32) (id uint32) {
	if l.m.Lookup(slot, &id) != nil {
		return 0
	}
	return id
}

func idOf(m *ebpf.Map) (uint32, error) {
	info, err := m.Info()
	if err != nil {
		return 0, fmt.Errorf("id of BPF map %v: %w", m, err)
	}
	id, ok := info.ID()
	if !ok {
		return 0, fmt.Errorf("%w: this kernel gives BPF maps no ids", ErrUnsupported)
	}
	return uint32(id), nil
}
