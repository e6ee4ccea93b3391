package trapmemory

import (
	"encoding/hex"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"stackshot/internal/bpf"
	"stackshot/internal/panicregion"
)

// Place is kernel memory that says, in a dump, where the memory of a loaded trap lies: a
// head and the frames (panicregion.KindLive). It belongs to one loaded trap and is never
// changed, so no reader of a dump meets half of it.
type Place struct {
	mem *bpf.KernelMemory
}

// parts of the region, behind head and list, in this order.
var placed = []struct {
	section uint32
	name    string // of the map; "": the slots
}{
	{panicregion.SectionStop, "stops"}, {panicregion.SectionWorkers, "workers"}, {panicregion.SectionSlots, ""},
	{panicregion.SectionQueue, "queue"}, {panicregion.SectionParts, "parts"}, {panicregion.SectionPieces, "pieces"},
	{panicregion.SectionRegion, "region"},
}

// machine is ELF's e_machine.
var machine = map[string]uint32{"amd64": 62, "arm64": 183}

// NewPlace writes down where the memory of l lies, and the slots that it uses. boot is
// /proc/sys/kernel/random/boot_id, at is CLOCK_BOOTTIME (ns).
// Errors: frame numbers are hidden from this process.
func NewPlace(l *bpf.Trap, slots []byte, boot string, at uint64) (*Place, error) {
	s := &panicregion.Static{Kind: panicregion.KindLive, Arch: machine[runtime.GOARCH], Region: at, Generation: 1, Written: uint64(time.Now().UnixNano())}
	id, err := hex.DecodeString(strings.ReplaceAll(boot, "-", ""))
	if err != nil || copy(s.BootID[:], id) != len(s.BootID) {
		return nil, fmt.Errorf("boot id %q: want 16 bytes in hexadecimal digits", boot)
	}
	var phys []uint64
	lens := make([]uint64, len(placed))
	for i, p := range placed {
		mem := slots
		if p.name != "" {
			mem = l.Mapped(p.name)
		}
		of, err := panicregion.Frames(mem)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
		phys = append(phys, of...)
		lens[i] = uint64(len(of)) * panicregion.PageSize
	}
	s.ListPages = uint32(panicregion.ListPages(len(phys) + 1))
	mem, err := bpf.NewKernelMemory(int(1+s.ListPages) * panicregion.PageSize)
	if err != nil {
		return nil, err
	}
	x := &Place{mem}
	if err := x.write(s, phys, lens); err != nil {
		return nil, errors.Join(err, x.Close())
	}
	return x, nil
}

func (x *Place) write(s *panicregion.Static, phys, lens []uint64) error {
	own, err := panicregion.Frames(x.mem.Bytes[:(1+s.ListPages)*panicregion.PageSize])
	if err != nil {
		return err
	}
	phys = append(own, phys...)
	s.Pages = uint64(len(phys))
	at := uint64(len(own)) * panicregion.PageSize
	for i, p := range placed {
		s.Sections = append(s.Sections, panicregion.Section{Kind: p.section, Off: at, Len: lens[i]})
		at += lens[i]
	}
	if err := panicregion.PutList(x.mem.Bytes[panicregion.PageSize:], s, panicregion.Runs(phys)); err != nil {
		return err
	}
	return panicregion.PutStatic(x.mem.Bytes, s)
}

// Bytes is head and list, as they lie in memory.
func (x *Place) Bytes() []byte { return x.mem.Bytes }

// Close clears the head, or a later dump would have one that leads nowhere, and frees the memory.
func (x *Place) Close() error {
	clear(x.mem.Bytes)
	return x.mem.Close()
}
