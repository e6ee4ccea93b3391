package symbol

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
)

var (
	// ErrNotELF means a file that is no 64-bit little-endian ELF file.
	ErrNotELF = errors.New("not a 64-bit little-endian ELF file")
	// ErrDamaged means an ELF file whose tables contradict each other or its size.
	ErrDamaged = errors.New("damaged")
	// ErrTooBig means a table above its cap.
	ErrTooBig = errors.New("too big")
)

// Caps of what is read of one file, in bytes unless said otherwise.
const (
	maxSections     = 1 << 16 // entries
	maxSegments     = 128     // entries; real files have a dozen
	maxSectionNames = 8 << 20
	maxSectionName  = 64
)

// Sizes of ELF64 structures.
const (
	segmentSize = 56
	sectionSize = 64
)

// layout is that of one ELF file. It is constant after it was read.
type layout struct {
	machine  elf.Machine
	entry    uint64
	segments []segment // PT_LOAD
	sections []section
}

// span is a piece of a file.
type span struct{ off, size uint64 }

type segment struct {
	vaddr, memsz, off, filesz uint64
	exec                      bool
}

type section struct {
	name            string
	nameAt          uint32 // in the table of the sections' names
	typ             elf.SectionType
	flags           elf.SectionFlag
	addr, off, size uint64
	link            uint32
}

// input is a file that is being read. Only the helper thread uses it.
type input struct {
	r    io.ReaderAt
	size uint64
}

// bytes reads a piece, which must lie in the file and be at most limit long.
func (in input) bytes(s span, limit uint64, what string) ([]byte, error) {
	if s.size > limit {
		return nil, fmt.Errorf("%s at offset %#x: %d bytes, at most %d: %w", what, s.off, s.size, limit, ErrTooBig)
	}
	if s.off > in.size || s.size > in.size-s.off {
		return nil, fmt.Errorf("%s at offset %#x: %d bytes, the file has %d: %w", what, s.off, s.size, in.size, ErrDamaged)
	}
	b := make([]byte, s.size)
	if n, err := in.r.ReadAt(b, int64(s.off)); n < len(b) {
		return nil, fmt.Errorf("%s at offset %#x: %w", what, s.off, err)
	}
	return b, nil
}

func readLayout(in input) (*layout, error) {
	b, err := in.bytes(span{0, min(64, in.size)}, 64, "ELF header")
	if err != nil {
		return nil, err
	}
	if len(b) < 64 || string(b[:4]) != elf.ELFMAG || elf.Class(b[elf.EI_CLASS]) != elf.ELFCLASS64 || elf.Data(b[elf.EI_DATA]) != elf.ELFDATA2LSB {
		return nil, ErrNotELF
	}
	var h elf.Header64
	if _, err := binary.Decode(b, binary.LittleEndian, &h); err != nil {
		return nil, err
	}
	m := &layout{machine: elf.Machine(h.Machine), entry: h.Entry}
	if err := m.readSegments(in, &h); err != nil {
		return nil, err
	}
	return m, m.readSections(in, &h)
}

func (m *layout) readSegments(in input, h *elf.Header64) error {
	b, err := headers(in, h.Phoff, uint64(h.Phnum), uint64(h.Phentsize), segmentSize, maxSegments, "program headers")
	for ; err == nil && len(b) > 0; b = b[segmentSize:] {
		var p elf.Prog64
		if _, err = binary.Decode(b, binary.LittleEndian, &p); err != nil {
			break
		}
		if elf.ProgType(p.Type) == elf.PT_LOAD {
			m.segments = append(m.segments, segment{p.Vaddr, p.Memsz, p.Off, p.Filesz, elf.ProgFlag(p.Flags)&elf.PF_X != 0})
		}
	}
	return err
}

// headers reads a table of n entries of entsize bytes each, which has to be size.
func headers(in input, off, n, entsize, size, most uint64, what string) ([]byte, error) {
	if n == 0 {
		return nil, nil
	}
	if entsize != size || n > most {
		return nil, fmt.Errorf("%s at offset %#x: %d of %d bytes: %w", what, off, n, entsize, ErrDamaged)
	}
	return in.bytes(span{off, n * size}, most*size, what)
}

func (m *layout) readSections(in input, h *elf.Header64) error {
	n, names := uint64(h.Shnum), uint32(h.Shstrndx)
	if h.Shoff == 0 {
		return nil
	}
	if first, err := headers(in, h.Shoff, 1, uint64(h.Shentsize), sectionSize, 1, "section headers"); err != nil {
		return err
	} else if s := decodeSection(first); n == 0 || names == uint32(elf.SHN_XINDEX) {
		// More than fit into the header: the first entry has the numbers.
		n, names = max(n, s.size), s.link
	}
	b, err := headers(in, h.Shoff, n, uint64(h.Shentsize), sectionSize, maxSections, "section headers")
	if err != nil {
		return err
	}
	for ; len(b) > 0; b = b[sectionSize:] {
		m.sections = append(m.sections, decodeSection(b))
	}
	return m.nameSections(in, names)
}

func (m *layout) nameSections(in input, names uint32) error {
	if uint64(names) >= uint64(len(m.sections)) {
		return fmt.Errorf("section names: no section %d: %w", names, ErrDamaged)
	}
	table, err := in.bytes(m.sections[names].span(), maxSectionNames, "section names")
	if err != nil {
		return err
	}
	for i := range m.sections {
		s := &m.sections[i]
		s.name = cstring(table, uint64(s.nameAt), maxSectionName)
	}
	return nil
}

func decodeSection(b []byte) section {
	le := binary.LittleEndian
	return section{
		nameAt: le.Uint32(b), typ: elf.SectionType(le.Uint32(b[4:])), flags: elf.SectionFlag(le.Uint64(b[8:])),
		addr: le.Uint64(b[16:]), off: le.Uint64(b[24:]), size: le.Uint64(b[32:]),
		link: le.Uint32(b[40:]),
	}
}

func (s *section) span() span { return span{s.off, s.size} }

// section returns the first section of that name with bytes in the file.
func (m *layout) section(name string) (*section, bool) {
	i := slices.IndexFunc(m.sections, func(s section) bool { return s.name == name && s.typ != elf.SHT_NOBITS })
	if i < 0 {
		return nil, false
	}
	return &m.sections[i], true
}

// vaddr turns an offset in the file into the address that the file was linked
// for.
func (m *layout) vaddr(off uint64) (uint64, bool) {
	for _, s := range m.segments {
		if off >= s.off && off-s.off < s.filesz {
			return s.vaddr + (off - s.off), true
		}
	}
	return 0, false
}

// cstring is the NUL-terminated string at off, cut at limit bytes.
func cstring(b []byte, off, limit uint64) string {
	if off >= uint64(len(b)) {
		return ""
	}
	b = b[off:min(uint64(len(b)), off+limit)]
	if i := slices.Index(b, 0); i >= 0 {
		b = b[:i]
	}
	return string(b)
}
