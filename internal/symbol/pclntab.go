package symbol

import (
	"debug/elf"
	"encoding/binary"
	"fmt"

	"stackshot/internal/gopclntab"
)

const (
	// Of runtime.moduledata, in words: text follows pcHeader, six slices,
	// findfunctab, minpc and maxpc.
	moduledataText  = 22
	maxModuledata   = 64 << 20 // of the sections searched for it
	maxRelocs       = 64 << 20
	relocAMD64      = 8    // R_X86_64_RELATIVE
	relocARM64      = 1027 // R_AARCH64_RELATIVE
	maxPCValueBytes = 1 << 20
)

// pclntab is where Go's table lies in a file. It is constant after it was made.
type pclntab struct {
	gopclntab.Header // Text: link-time
	at               span
}

// findPclntab returns nil for a file that is not Go's, or is of a Go before 1.18.
func findPclntab(in input, m *layout) (*pclntab, error) {
	var s *section
	ok := false
	for _, name := range gopclntab.Sections {
		if s, ok = m.section(name); ok {
			break
		}
	}
	if !ok {
		return nil, nil
	}
	b, err := in.bytes(span{s.off, min(s.size, gopclntab.HeaderSize)}, gopclntab.HeaderSize, s.name)
	if err != nil {
		return nil, err
	}
	p := &pclntab{at: s.span()}
	if p.Header, err = gopclntab.ParseHeader(b, s.size); err != nil {
		return nil, fmt.Errorf("%s at offset %#x: %w", s.name, s.off, err)
	}
	if p.NFunc == 0 {
		return nil, fmt.Errorf("%s at offset %#x: no functions: %w", s.name, s.off, ErrDamaged)
	}
	if p.Text == 0 {
		if p.Text, ok = p.findText(in, m, s.addr); !ok {
			return nil, fmt.Errorf("%s at offset %#x: no address of the text", s.name, s.off)
		}
	}
	return p, nil
}

// findText looks for runtime.text: in the module data, in the relocations that
// will fill it, or at the start of .text where the entry point is then a
// function.
func (p *pclntab) findText(in input, m *layout, self uint64) (uint64, bool) {
	for _, name := range []string{".go.module", ".noptrdata", ".data", ".data.rel.ro"} {
		if s, ok := m.section(name); ok {
			if text, ok := textOfModuledata(in, s, self, m); ok {
				return text, true
			}
		}
	}
	if text, ok := textOfRelocs(in, m, self); ok {
		return text, true
	}
	s, ok := m.section(".text")
	if !ok || m.entry < s.addr {
		return 0, false
	}
	entry, _, ok := p.find(in, m.entry-s.addr)
	return s.addr, ok && entry == m.entry-s.addr
}

func textOfModuledata(in input, s *section, self uint64, m *layout) (uint64, bool) {
	b, err := in.bytes(s.span(), maxModuledata, s.name)
	if err != nil {
		return 0, false
	}
	le := binary.LittleEndian
	for at := 0; at+8*(moduledataText+1) <= len(b); at += 8 {
		if le.Uint64(b[at:]) != self {
			continue
		}
		if text := le.Uint64(b[at+8*moduledataText:]); m.executable(text) {
			return text, true
		}
	}
	return 0, false
}

func (m *layout) executable(vaddr uint64) bool {
	for _, s := range m.segments {
		if s.exec && vaddr >= s.vaddr && vaddr-s.vaddr < s.memsz {
			return true
		}
	}
	return false
}

// textOfRelocs finds the relocation of the module data's first word, and then
// that of its text.
func textOfRelocs(in input, m *layout, self uint64) (uint64, bool) {
	s, ok := m.section(".rela.dyn")
	if !ok {
		if s, ok = m.section(".rela"); !ok {
			return 0, false
		}
	}
	b, err := in.bytes(s.span(), maxRelocs, s.name)
	if err != nil {
		return 0, false
	}
	le := binary.LittleEndian
	relative := uint64(relocAMD64)
	if m.machine == elf.EM_AARCH64 {
		relative = relocARM64
	}
	starts, texts := map[uint64]bool{}, map[uint64]uint64{}
	for ; len(b) >= 24; b = b[24:] {
		if at, addend := le.Uint64(b), le.Uint64(b[16:]); le.Uint64(b[8:]) != relative {
			continue
		} else if addend == self {
			starts[at] = true
		} else if m.executable(addend) {
			texts[at] = addend
		}
	}
	for at := range starts {
		if text, ok := texts[at+8*moduledataText]; ok {
			return text, true
		}
	}
	return 0, false
}

// u32 reads a word of the table. 0 if there is none.
func (p *pclntab) u32(in input, off uint64) uint32 {
	var b [4]byte
	if off >= p.at.size || p.at.size-off < 4 || p.at.off+p.at.size > in.size {
		return 0
	}
	in.r.ReadAt(b[:], int64(p.at.off+off))
	return binary.LittleEndian.Uint32(b[:])
}

// find returns the function that holds pc: its entry, both relative to the
// text, and the place of its _func in the table.
func (p *pclntab) find(in input, pc uint64) (entry, at uint64, ok bool) {
	return p.Find(func(off uint64) uint32 { return p.u32(in, off) }, pc)
}

func (p *pclntab) lookup(in input, vaddr uint64) (name string, start uint64, ok bool) {
	if p == nil || vaddr < p.Text {
		return "", 0, false
	}
	entry, at, ok := p.find(in, vaddr-p.Text)
	if !ok {
		return "", 0, false
	}
	name = p.cstring(in, p.Names+uint64(p.u32(in, at+gopclntab.FuncName)))
	return name, p.Text + entry, name != ""
}

func (p *pclntab) cstring(in input, off uint64) string { return in.cstring(p.at, off) }

// line returns source file and line of vaddr, from the tables pcfile and pcln.
func (p *pclntab) line(in input, vaddr uint64) (file string, line uint32) {
	if p == nil || vaddr < p.Text {
		return "", 0
	}
	entry, at, ok := p.find(in, vaddr-p.Text)
	if !ok {
		return "", 0
	}
	pc := vaddr - p.Text - entry
	n, ok := p.value(in, p.Values+uint64(p.u32(in, at+gopclntab.FuncLine)), pc)
	if !ok || n <= 0 {
		return "", 0
	}
	fileno, ok := p.value(in, p.Values+uint64(p.u32(in, at+gopclntab.FuncFile)), pc)
	if !ok || fileno < 0 {
		return "", 0
	}
	unit := uint64(p.u32(in, at+gopclntab.FuncUnit)) + uint64(fileno)
	off := p.u32(in, p.Units+4*unit)
	if off == 0xffffffff {
		return "", 0
	}
	return p.cstring(in, p.Files+uint64(off)), uint32(n)
}

// value is that of a table of values at pc, which is relative to the function's
// entry.
func (p *pclntab) value(in input, off, pc uint64) (int32, bool) {
	if off >= p.at.size {
		return 0, false
	}
	for n := uint64(4 << 10); ; n *= 16 { // nearly all are short
		b, err := in.bytes(span{p.at.off + off, min(p.at.size-off, n)}, maxPCValueBytes, "pcvalue")
		if err != nil {
			return 0, false
		}
		if v, ok := p.Value(b, pc); ok || n >= min(p.at.size-off, maxPCValueBytes) {
			return v, ok
		}
	}
}
