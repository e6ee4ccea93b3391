package symbol

import (
	"cmp"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"stackshot/internal/elffile"
)

const (
	maxSymbols = 4 << 20 // of one section
	symSize    = 24      // sizeof(Elf64_Sym)
	symPart    = 4096    // as many are read at once
	// maxRawName is the longest mangled name that is read.
	maxRawName = 16 << 10
	// maxNested is how many symbols before an address are looked at for one
	// that holds it: symbols rarely lie within each other.
	maxNested = 64
)

// table is the functions of one file in order of their addresses. It reads their names
// when somebody asks for them. It is constant after it was made.
type table struct {
	syms []sym
	strs []nameTable
}

// sym is kept small: a browser has a million of them.
type sym struct {
	addr uint64
	size uint32 // bytes, never 0: seal gives one to symbols without
	name uint32 // offset in strs[tab]
	tab  uint8
	rank uint8 // of several at one address the one with the lowest rank counts
}

// Bits of sym.rank.
const (
	rankLocal  = 1 << 0
	rankNoSize = 1 << 1
	rankNoType = 1 << 2
)

// nameTable is a string table: in the file, or in memory if data is not nil.
type nameTable struct {
	at   elffile.Span
	data []byte
}

const symBytes = 24 // of memory for a sym

func (t *table) bytes() int {
	n := len(t.syms) * symBytes
	for _, s := range t.strs {
		n += len(s.data)
	}
	return n
}

// addSymbols takes in the symbols of the section of a type; a file has one at most,
// as the ELF specification says. inMemory keeps the strings, for a file that will
// not be there later.
func (t *table) addSymbols(in elffile.Reader, m *elffile.Layout, typ elf.SectionType, inMemory bool) error {
	i := slices.IndexFunc(m.Sections, func(s elffile.Section) bool {
		return s.Type == typ && s.Size > 0 && uint64(s.Link) < uint64(len(m.Sections))
	})
	if i < 0 {
		return nil
	}
	s := &m.Sections[i]
	each := func(f func(sym)) error {
		return in.InParts(s.Span(), maxSymbols*symSize, symPart*symSize, s.Name, func(b []byte) {
			for ; len(b) >= symSize; b = b[symSize:] {
				if y, ok := decodeSym(b, m); ok {
					f(y)
				}
			}
		})
	}
	n := 0 // counted first: a list that grows takes twice as much
	if err := each(func(sym) { n++ }); err != nil {
		return err
	}
	if most := in.Room / symBytes; uint64(len(t.syms)+n) > most {
		return fmt.Errorf("%s at offset %#x: %d functions, and memory for %d: %w", s.Name, s.Off, n, most-min(most, uint64(len(t.syms))), elffile.ErrTooBig)
	}
	str := nameTable{at: m.Sections[s.Link].Span()}
	if inMemory {
		var err error
		if str.data, err = in.Bytes(str.at, maxMiniDebug, "symbol names"); err != nil {
			return err
		}
	}
	tab := uint8(len(t.strs))
	t.strs = append(t.strs, str)
	t.syms = slices.Grow(t.syms, n)
	return each(func(y sym) {
		if y.tab = tab; n > 0 { // else the file grows under us
			t.syms = append(t.syms, y)
			n--
		}
	})
}

// decodeSym takes functions, and marks without a type in code: assembly.
func decodeSym(b []byte, m *elffile.Layout) (sym, bool) {
	le := binary.LittleEndian
	y := sym{addr: le.Uint64(b[8:]), name: le.Uint32(b)}
	shndx := elf.SectionIndex(le.Uint16(b[6:]))
	if shndx == elf.SHN_UNDEF || y.name == 0 {
		return sym{}, false
	}
	switch elf.ST_TYPE(b[4]) {
	case elf.STT_FUNC, elf.STT_GNU_IFUNC:
	case elf.STT_NOTYPE:
		y.rank |= rankNoType
		if int(shndx) >= len(m.Sections) || m.Sections[shndx].Flags&elf.SHF_EXECINSTR == 0 {
			return sym{}, false
		}
	default:
		return sym{}, false
	}
	if elf.ST_BIND(b[4]) == elf.STB_LOCAL {
		y.rank |= rankLocal
	}
	if size := le.Uint64(b[16:]); size != 0 {
		y.size = uint32(min(size, math.MaxUint32))
	} else {
		y.rank |= rankNoSize
		y.size = sectionRest(m, int(shndx), y.addr)
	}
	return y, y.size > 0
}

// sectionRest is how far it is from addr to the end of its section.
func sectionRest(m *elffile.Layout, shndx int, addr uint64) uint32 {
	if shndx >= len(m.Sections) {
		return 0
	}
	s := &m.Sections[shndx]
	if addr < s.Addr || addr-s.Addr >= s.Size {
		return 0
	}
	return uint32(min(s.Size-(addr-s.Addr), math.MaxUint32))
}

// seal sorts the symbols, and gives an end to those without a size. If the table has
// all symbols, such a symbol ends where the next one begins. If it has only those that
// other files link to, the second byte may already belong to a function without a name.
// A mark inside a function with a size is no function.
func (t *table) seal(all bool) {
	slices.SortFunc(t.syms, func(a, b sym) int {
		return cmp.Or(cmp.Compare(a.addr, b.addr), cmp.Compare(a.rank, b.rank))
	})
	kept, end := t.syms[:0], uint64(0)
	for i, y := range t.syms {
		if y.rank&rankNoSize == 0 {
			end = max(end, y.addr+uint64(y.size))
		} else if y.addr < end {
			continue
		} else if !all {
			y.size = 1
		} else if next, ok := nextAddr(t.syms[i:]); ok {
			y.size = uint32(min(uint64(y.size), next-y.addr))
		}
		kept = append(kept, y)
	}
	if t.syms = kept; len(kept) < cap(kept) {
		t.syms = slices.Clone(kept) // what was dropped is not counted, so it must not be kept
	}
}

// nextAddr is the first address after that of the first symbol. Aliases are few,
// but a hostile file may have nothing else.
func nextAddr(syms []sym) (uint64, bool) {
	for _, y := range syms[:min(len(syms), maxNested)] {
		if y.addr != syms[0].addr {
			return y.addr, true
		}
	}
	return 0, false
}

// find returns the symbols at the start of the innermost function that holds
// vaddr, best rank first. It looks at those before the start before.
func (t *table) find(vaddr, before uint64) []sym {
	i, _ := slices.BinarySearchFunc(t.syms, before, func(y sym, a uint64) int { return cmp.Compare(y.addr, a) })
	for n := 0; n < maxNested && i > 0; n++ {
		i--
		y := t.syms[i]
		if vaddr-y.addr >= uint64(y.size) {
			continue
		}
		first := i
		for first > 0 && i-first < maxNested && t.syms[first-1].addr == y.addr {
			first--
		}
		return t.syms[first : i+1]
	}
	return nil
}

// lookup returns the name that reads best of the function that holds vaddr.
func (t *table) lookup(in elffile.Reader, vaddr uint64) (raw string, start uint64, ok bool) {
	if vaddr == math.MaxUint64 {
		return "", 0, false
	}
	before := vaddr + 1
	for range maxNested {
		syms := t.find(vaddr, before)
		if len(syms) == 0 {
			return "", 0, false
		}
		best, rank := "", uint8(math.MaxUint8)
		for _, y := range syms {
			if y.rank > rank && best != "" || vaddr-y.addr >= uint64(y.size) {
				continue
			}
			if name := t.name(in, y); readsBetter(name, best) {
				best, rank = name, y.rank
			}
		}
		if best != "" {
			return best, syms[0].addr, true
		}
		before = syms[0].addr // nothing but marks of the assembler
	}
	return "", 0, false
}

// name reads a symbol's name without its version; "" for marks that are no names.
func (t *table) name(in elffile.Reader, y sym) string {
	s := t.strs[y.tab]
	var name string
	if s.data != nil {
		name = elffile.Text(s.data, uint64(y.name), maxRawName)
	} else {
		name = in.Text(s.at, uint64(y.name), maxRawName)
	}
	if isMark(name) {
		return ""
	}
	if i := strings.IndexByte(name, '@'); i > 0 && !strings.ContainsAny(name, "/{( ") {
		name = name[:i]
	}
	return name
}

// isMark reports the mapping symbols of arm64 and RISC-V ($x, $d.1), local
// labels, and the marks of annobin.
func isMark(name string) bool {
	if len(name) >= 2 && name[0] == '$' && strings.IndexByte("xdat", name[1]) >= 0 && (len(name) == 2 || name[2] == '.') {
		return true
	}
	return strings.HasPrefix(name, ".L") || strings.HasPrefix(name, ".annobin")
}

// readsBetter orders names of one address and rank.
func readsBetter(a, b string) bool {
	if a == "" || b == "" {
		return a != ""
	}
	return cmp.Or(cmp.Compare(underscores(a), underscores(b)), cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) < 0
}

// underscores at the start; those of a mangled name are its mark.
func underscores(s string) int {
	if strings.HasPrefix(s, "_Z") || strings.HasPrefix(s, "_R") {
		return 0
	}
	return len(s) - len(strings.TrimLeft(s, "_"))
}
