package bpf

import (
	"errors"
	"fmt"
	"sync"

	"github.com/cilium/ebpf"
)

// DirectMap says where the kernel maps all memory, and how the page tables of this
// machine's tasks are laid out. The programs need both to read user memory.
type DirectMap struct {
	Base       uint64 // where physical address 0 would be mapped
	TopShift   uint32 // log2 of what one entry of a task's first table covers
	VABits     uint32 // of a user address
	Encryption uint64 // bits of an entry that mark encrypted memory
	ProtNone   uint64 // a bit of entries that are not present but PROT_NONE
	RAM        []RAMRange
}

// RAMRange is a range of physical addresses, [Start, End).
type RAMRange struct{ Start, End uint64 }

// MaxRAM is how many ranges the programs know (ram.h, RAM_RANGES). If a machine has
// more, the largest are kept, and the programs refuse addresses in the others.
const MaxRAM = 128

// DirectMapError says why user memory cannot be read. Err is the cause; nil: What
// itself is the reason.
type DirectMapError struct {
	What string
	Err  error
}

func (e *DirectMapError) Error() string {
	if e.Err == nil {
		return e.What
	}
	return e.What + ": " + e.Err.Error()
}

func (e *DirectMapError) Unwrap() error { return e.Err }

// FindDirectMap finds the kernel's map of all memory and verifies it on pages of
// this process. It searches once, since the map stays where it is until the machine
// reboots. It needs BPF, and CAP_SYS_ADMIN for frame numbers and physical addresses.
// Errors: *DirectMapError.
var FindDirectMap = sync.OnceValues(findDirectMap)

func findDirectMap() (*DirectMap, error) {
	ram, err := systemRAM("/proc/iomem")
	if err != nil {
		return nil, err
	}
	own, err := newOwnPages()
	if err != nil {
		return nil, err
	}
	defer own.free()
	k, err := newAsker("peek_words", nil)
	if err != nil {
		return nil, err
	}
	defer k.close()
	f := finder{ram: ram, layout: layoutHere(), frames: pagemap("/proc/self/pagemap"), kernel: k, own: own.list}
	m, err := f.find()
	if err != nil {
		return nil, err
	}
	if m.ProtNone, err = f.protNone(m, own.closed); err != nil {
		return nil, err
	}
	return m, verify(m, own)
}

// verify checks, by the programs' own page table walk, that each of our pages has the
// word that we wrote to it, and that the page with PROT_NONE is refused.
func verify(m *DirectMap, own *ownPages) error {
	k, err := newAsker("walk_pages", m)
	if err != nil {
		return err
	}
	defer k.close()
	addrs := []uint64{own.closed}
	for _, p := range own.list {
		addrs = append(addrs, p.addr)
	}
	got, err := k.words(addrs)
	if err != nil {
		return err
	}
	if got[0].why == pageThere {
		return &DirectMapError{What: "a page that may not be read was read"}
	}
	for i, p := range own.list {
		if got[i+1] != (word{value: p.value}) {
			return &DirectMapError{What: fmt.Sprintf("page %#x of our own: %#x was read, %#x stands there (reason %d)", p.addr, got[i+1].value, p.value, got[i+1].why)}
		}
	}
	return nil
}

// Reasons of a word that was not read (usermem.h, enum page_why).
const (
	pageThere   = 0
	pageAbsent  = 1
	pageRefused = 2
	pageNone    = 3
)

// setDirectMap tells the programs of a spec how to walk page tables.
func setDirectMap(spec *ebpf.CollectionSpec, m *DirectMap) error {
	return errors.Join(setRAM(spec, m), setValues(spec, map[string]any{
		"cfg_top_shift": m.TopShift, "cfg_va_bits": m.VABits, "cfg_encryption": m.Encryption, "cfg_prot_none": m.ProtNone,
	}))
}

// setRAM tells them where ordinary memory is: they follow no pointer to elsewhere
// (ram.h).
func setRAM(spec *ebpf.CollectionSpec, m *DirectMap) error {
	ram := [MaxRAM]RAMRange{}
	for i := range ram {
		ram[i] = RAMRange{1 << 62, 1 << 62}
	}
	copy(ram[:], m.RAM)
	return setValues(spec, map[string]any{"cfg_dm_base": m.Base, "cfg_ram": ram})
}

func setValues[V any](spec *ebpf.CollectionSpec, values map[string]V) error {
	for name, v := range values {
		if err := spec.Variables[name].Set(v); err != nil {
			return fmt.Errorf("set %s: %w", name, err)
		}
	}
	return nil
}
