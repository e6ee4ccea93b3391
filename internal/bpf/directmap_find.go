package bpf

import (
	"fmt"
	"math/bits"
	"runtime"
)

// finder searches for the direct map. What it needs from the machine is in its fields, so
// that tests can replace it.
type finder struct {
	ram    []RAMRange // ascending
	layout layout
	frames func(addr uint64) (frame uint64, err error)
	kernel kernelWords
	own    []ownPage
}

// ownPage is a page of this process with a known word at its address.
type ownPage struct{ addr, value uint64 }

// kernelWords reads words of the kernel's memory. pgd is this process's first
// table, known after a call of words.
type kernelWords interface {
	words(addrs []uint64) ([]word, error)
	pgd() uint64
}

type word struct {
	value uint64
	why   uint32 // 0: it was read
}

// layout is what an architecture's page tables look like (usermem.h).
type layout struct {
	pageShift uint32
	tops      []top // in the order to be tried
	step      uint64
	address   func(entry uint64) uint64
	leaf      func(entry uint64, shift uint32) bool
}

// top is one form of the first table.
type top struct{ shift, vaBits uint32 }

func (l *layout) tableBits() uint32 { return l.pageShift - 3 }

// entryAt is where in a table of the level at shift the entry of addr lies, bytes.
func (l *layout) entryAt(addr uint64, shift, topShift uint32) uint64 {
	index := addr >> shift
	if shift != topShift {
		index &= 1<<l.tableBits() - 1
	}
	return index * 8
}

func layoutHere() layout {
	if runtime.GOARCH == "arm64" {
		return layoutARM64(pageShift())
	}
	return layoutAMD64()
}

// layoutAMD64: the map begins at a multiple of 1 GiB (CONFIG_RANDOMIZE_MEMORY
// moves it by such).
func layoutAMD64() layout {
	return layout{
		pageShift: 12, tops: []top{{39, 47}, {48, 56}}, step: 1 << 30,
		address: func(e uint64) uint64 { return e & 0x000f_ffff_ffff_f000 },
		leaf:    func(e uint64, shift uint32) bool { return shift == 12 || e&0x80 != 0 },
	}
}

// layoutARM64: addresses are moved by multiples of at least 512 MiB
// (ARM64_MEMSTART_SHIFT, arch/arm64/include/asm/kernel-pgtable.h).
func layoutARM64(pageShift uint32) layout {
	l := layout{
		pageShift: pageShift, step: 512 << 20,
		address: func(e uint64) uint64 { return e & 0x0003_ffff_ffff_ffff &^ (1<<pageShift - 1) },
		leaf:    func(e uint64, shift uint32) bool { return shift == pageShift || e&2 == 0 },
	}
	switch pageShift {
	case 12:
		l.tops = []top{{39, 48}, {30, 39}, {48, 52}}
	case 14:
		l.tops = []top{{36, 47}, {47, 48}, {25, 36}}
	case 16:
		l.tops = []top{{42, 52}, {29, 42}}
		l.address = func(e uint64) uint64 { return e&0x0000_ffff_ffff_0000 | e&0xf000<<36 }
	}
	return l
}

// find tries every form of the first table, and every base for which this process's
// first table lies in System RAM. It takes the first base by which the walk to each of
// our pages leads to the frame that pagemap names, and to the word that we wrote there.
func (f *finder) find() (*DirectMap, error) {
	if _, err := f.kernel.words([]uint64{0}); err != nil { // tells pgd
		return nil, err
	}
	for _, t := range f.layout.tops {
		bases, enc, err := f.bases(t, f.own[0])
		if err != nil {
			return nil, err
		}
		for _, base := range bases {
			m := &DirectMap{Base: base, TopShift: t.shift, VABits: t.vaBits, Encryption: enc, RAM: f.ram}
			if ok, err := f.yields(m); err != nil || ok {
				return m, err
			}
		}
	}
	return nil, &DirectMapError{What: fmt.Sprintf("no base of the kernel's map of all memory leads from this process's page tables (at %#x) to its own pages", f.kernel.pgd())}
}

// yields reports whether a map leads to all of our pages.
func (f *finder) yields(m *DirectMap) (bool, error) {
	for _, p := range f.own {
		bases, _, err := f.narrow([]uint64{m.Base}, m.top(), p)
		if err != nil || len(bases) == 0 {
			return false, err
		}
	}
	return true, nil
}

func (m *DirectMap) top() top { return top{m.TopShift, m.VABits} }

// bases returns the bases that lead to one page of ours, and the encryption bits.
func (f *finder) bases(t top, p ownPage) (bases []uint64, enc uint64, err error) {
	pgd := f.kernel.pgd()
	first := pgd &^ (f.layout.step - 1)
	for off := uint64(0); off < f.ramEnd(); off += f.layout.step {
		if f.inRAM(pgd - first + off) {
			bases = append(bases, first-off)
		}
	}
	return f.narrow(bases, t, p)
}

// candidate is a base on its way down the tables.
type candidate struct{ base, table uint64 }

// narrow keeps the bases whose walk leads to p. All walks begin at the same entry: if
// its address has bits above the last frame of RAM, these mark encrypted memory.
func (f *finder) narrow(bases []uint64, t top, p ownPage) (out []uint64, enc uint64, err error) {
	frame, err := f.frames(p.addr)
	if err != nil {
		return nil, 0, err
	}
	var list []candidate
	for _, b := range bases {
		list = append(list, candidate{b, f.kernel.pgd() - b})
	}
	above := ^(uint64(1)<<bits.Len64(f.ramEnd()-1) - 1)
	mask := ^uint64(0)
	for shift := t.shift; len(list) > 0; shift -= f.layout.tableBits() {
		entries, err := f.read(list, f.layout.entryAt(p.addr, shift, t.shift))
		if err != nil {
			return nil, 0, err
		}
		if shift == t.shift && entries[0].why == 0 {
			enc = f.layout.address(entries[0].value) & above
		}
		leaf := false
		list, leaf = f.descend(list, entries, enc, shift, p.addr, frame)
		if leaf || shift <= f.layout.pageShift {
			mask = 1<<f.layout.pageShift - 1
			break
		}
	}
	if bits.OnesCount64(enc) > 1 {
		return nil, 0, nil
	}
	values, err := f.read(list, p.addr&mask)
	if err != nil {
		return nil, 0, err
	}
	for i, c := range list {
		if values[i] == (word{value: p.value}) {
			out = append(out, c.base)
		}
	}
	return out, enc, nil
}

// descend goes one level down, and keeps the candidates whose entry is present and leads
// into RAM. leaf: the entries lead to a page, and it is the frame that is looked for.
func (f *finder) descend(list []candidate, entries []word, enc uint64, shift uint32, addr, frame uint64) (kept []candidate, leaf bool) {
	for i, c := range list {
		e := entries[i]
		pa := f.layout.address(e.value) &^ enc
		isLeaf := f.layout.leaf(e.value, shift)
		if isLeaf {
			pa = pa&^(1<<shift-1) | addr&(1<<shift-1)&^(1<<f.layout.pageShift-1)
		}
		if e.why != 0 || e.value&1 == 0 || !f.inRAM(pa) || isLeaf && pa>>f.layout.pageShift != frame {
			continue
		}
		leaf = leaf || isLeaf
		kept = append(kept, candidate{c.base, pa})
	}
	return kept, leaf
}

// read reads the word at one offset of every candidate's table, many at once.
func (f *finder) read(list []candidate, off uint64) ([]word, error) {
	addrs := make([]uint64, len(list))
	for i, c := range list {
		addrs[i] = c.base + c.table + off
	}
	return f.kernel.words(addrs)
}

func (f *finder) ramEnd() uint64 { return f.ram[len(f.ram)-1].End }

func (f *finder) inRAM(pa uint64) bool {
	for _, r := range f.ram {
		if pa >= r.Start && pa < r.End {
			return true
		}
	}
	return false
}

// protNone finds the bit that marks an entry as PROT_NONE rather than absent, by the entry
// of a page of ours that has PROT_NONE. amd64: _PAGE_PROTNONE, bit 8. arm64: bit 58, since "arm64/mm:
// PTE_PROT_NONE" became PTE_PRESENT_INVALID (in 6.11) bit 11.
func (f *finder) protNone(m *DirectMap, addr uint64) (uint64, error) {
	table := f.kernel.pgd()
	for shift := m.TopShift; ; shift -= f.layout.tableBits() {
		got, err := f.kernel.words([]uint64{table + f.layout.entryAt(addr, shift, m.TopShift)})
		if err != nil {
			return 0, err
		}
		e := got[0].value
		if e&1 == 0 || shift <= f.layout.pageShift {
			for _, bit := range []uint64{1 << 58, 1 << 11, 1 << 8} {
				if e&1 == 0 && e&bit != 0 && (runtime.GOARCH == "arm64") == (bit != 1<<8) {
					return bit, nil
				}
			}
			return 0, &DirectMapError{What: fmt.Sprintf("the entry %#x of a PROT_NONE page has no mark that it is one", e)}
		}
		table = m.Base + f.layout.address(e)&^m.Encryption
	}
}
