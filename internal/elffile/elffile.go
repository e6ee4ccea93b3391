// Package elffile reads the headers and sections of 64-bit little-endian ELF files.
// It trusts nothing that it reads: what a file makes it read and keep is bounded by
// the file's own size and by fixed limits, whatever the file claims. (debug/elf takes
// memory for what a file claims, and copies a name for each section that points at it.)
package elffile

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
)

var (
	// ErrNotELF means a file that is no 64-bit little-endian ELF file.
	ErrNotELF = errors.New("not a 64-bit little-endian ELF file")
	// ErrDamaged means an ELF file whose tables contradict each other or its size.
	ErrDamaged = errors.New("damaged")
	// ErrTooBig means a table above its limit.
	ErrTooBig = errors.New("too big")
)

// Limits of what is read of one file, in bytes unless said otherwise.
const (
	maxSections     = 1 << 16 // entries
	maxSegments     = 128     // entries; real files have a dozen
	maxSectionNames = 8 << 20
	maxSectionName  = 64 // what is longer is cut
)

// Sizes of ELF64 structures.
const (
	headerSize  = 64
	segmentSize = 56
	sectionSize = 64
)

// Span is a piece of a file, in bytes.
type Span struct{ Off, Size uint64 }

// Reader reads pieces of one file.
type Reader struct {
	io.ReaderAt
	Size uint64 // of the file, bytes
	Room uint64 // bytes of memory that a piece, or what is made of it, may take
}

// NewReader makes one for a file of size bytes, with room for whatever the fixed limits allow.
func NewReader(r io.ReaderAt, size int64) Reader {
	return Reader{r, uint64(max(size, 0)), math.MaxUint64}
}

// Holds says whether a piece lies in the file.
func (r Reader) Holds(s Span) bool { return s.Off <= r.Size && s.Size <= r.Size-s.Off }

// Bytes reads a piece, which must lie in the file and be at most limit bytes long;
// what names it in errors. Errors: ErrTooBig, ErrDamaged, the reader's.
func (r Reader) Bytes(s Span, limit uint64, what string) ([]byte, error) {
	if err := r.check(s, min(limit, r.Room), what); err != nil {
		return nil, err
	}
	b := make([]byte, s.Size)
	return b, r.fill(b, s.Off, what)
}

// InParts reads a piece as Bytes does, but calls f for each part bytes of it, and for the rest. f
// must not keep them. Room does not bound the piece: only a part of it is in memory.
func (r Reader) InParts(s Span, limit, part uint64, what string, f func([]byte)) error {
	if err := r.check(s, limit, what); err != nil {
		return err
	}
	b := make([]byte, min(part, s.Size))
	for at := uint64(0); at < s.Size; at += part {
		b = b[:min(part, s.Size-at)]
		if err := r.fill(b, s.Off+at, what); err != nil {
			return err
		}
		f(b)
	}
	return nil
}

func (r Reader) check(s Span, limit uint64, what string) error {
	if s.Size > limit {
		return fmt.Errorf("%s at offset %#x: %d bytes, at most %d: %w", what, s.Off, s.Size, limit, ErrTooBig)
	}
	if !r.Holds(s) {
		return fmt.Errorf("%s at offset %#x: %d bytes, the file has %d: %w", what, s.Off, s.Size, r.Size, ErrDamaged)
	}
	return nil
}

func (r Reader) fill(b []byte, off uint64, what string) error {
	if n, err := r.ReadAt(b, int64(off)); n < len(b) {
		return fmt.Errorf("%s at offset %#x: %w", what, off, err)
	}
	return nil
}

// Text reads the string at off of a string table, cut at limit bytes; "" if there
// is none. Most strings are short, so it begins with few bytes.
func (r Reader) Text(table Span, off, limit uint64) string {
	if off >= table.Size || !r.Holds(table) {
		return ""
	}
	for n := uint64(128); ; n *= 4 {
		want := min(n, table.Size-off, limit)
		b := make([]byte, want)
		got, _ := r.ReadAt(b, int64(table.Off+off))
		text, _, ended := bytes.Cut(b[:got], []byte{0})
		if ended || want < n || uint64(got) < want || want == limit {
			return string(text)
		}
	}
}

// Text is the string at off of a string table in memory, cut at limit bytes; "" if
// there is none.
func Text(table []byte, off, limit uint64) string {
	if off >= uint64(len(table)) {
		return ""
	}
	text, _, _ := bytes.Cut(table[off:min(uint64(len(table)), off+limit)], []byte{0})
	return string(text)
}

// Layout is where one file has what. It is constant after it was read.
type Layout struct {
	Machine     elf.Machine
	Entry       uint64
	Segments    Segments       // PT_LOAD
	FrameHeader elf.ProgHeader // PT_GNU_EH_FRAME; zero: none
	Sections    []Section
}

// Segments are the pieces of a file that are mapped.
type Segments []elf.ProgHeader

// Section is one section. Addresses are those the file was linked for.
type Section struct {
	Name            string
	Type            elf.SectionType
	Flags           elf.SectionFlag
	Addr, Off, Size uint64
	Link            uint32
	nameAt          uint32 // in the table of the sections' names
}

// Span is where the section lies in the file.
func (s *Section) Span() Span { return Span{s.Off, s.Size} }

// Read reads the headers of a file. Errors: ErrNotELF, ErrDamaged, ErrTooBig, the
// reader's.
func Read(r Reader) (*Layout, error) {
	b, err := r.Bytes(Span{0, min(headerSize, r.Size)}, headerSize, "ELF header")
	if err != nil {
		return nil, err
	}
	if len(b) < headerSize || string(b[:4]) != elf.ELFMAG || elf.Class(b[elf.EI_CLASS]) != elf.ELFCLASS64 || elf.Data(b[elf.EI_DATA]) != elf.ELFDATA2LSB {
		return nil, ErrNotELF
	}
	var h elf.Header64
	binary.Decode(b, binary.LittleEndian, &h) // cannot fail: the sizes are constant
	m := &Layout{Machine: elf.Machine(h.Machine), Entry: h.Entry}
	if err := m.readSegments(r, &h); err != nil {
		return nil, err
	}
	return m, m.readSections(r, &h)
}

func (m *Layout) readSegments(r Reader, h *elf.Header64) error {
	b, err := headers(r, h.Phoff, uint64(h.Phnum), uint64(h.Phentsize), segmentSize, maxSegments, "program headers")
	for ; len(b) > 0; b = b[segmentSize:] {
		var p elf.Prog64
		binary.Decode(b, binary.LittleEndian, &p)
		header := elf.ProgHeader{
			Type: elf.ProgType(p.Type), Flags: elf.ProgFlag(p.Flags), Off: p.Off,
			Vaddr: p.Vaddr, Paddr: p.Paddr, Filesz: p.Filesz, Memsz: p.Memsz, Align: p.Align,
		}
		switch {
		case header.Type == elf.PT_LOAD:
			m.Segments = append(m.Segments, header)
		case header.Type == elf.PT_GNU_EH_FRAME && m.FrameHeader.Type == 0:
			m.FrameHeader = header
		}
	}
	return err
}

// headers reads a table of n entries of entsize bytes each, which has to be size.
func headers(r Reader, off, n, entsize, size, most uint64, what string) ([]byte, error) {
	if n == 0 {
		return nil, nil
	}
	if entsize != size || n > most {
		return nil, fmt.Errorf("%s at offset %#x: %d of %d bytes: %w", what, off, n, entsize, ErrDamaged)
	}
	return r.Bytes(Span{off, n * size}, most*size, what)
}

func (m *Layout) readSections(r Reader, h *elf.Header64) error {
	n, names := uint64(h.Shnum), uint32(h.Shstrndx)
	if h.Shoff == 0 {
		return nil
	}
	if first, err := headers(r, h.Shoff, 1, uint64(h.Shentsize), sectionSize, 1, "section headers"); err != nil {
		return err
	} else if s := decodeSection(first); n == 0 || names == uint32(elf.SHN_XINDEX) {
		// More than fit into the header: the first entry has the numbers.
		n, names = max(n, s.Size), s.Link
	}
	b, err := headers(r, h.Shoff, n, uint64(h.Shentsize), sectionSize, maxSections, "section headers")
	if err != nil {
		return err
	}
	for ; len(b) > 0; b = b[sectionSize:] {
		m.Sections = append(m.Sections, decodeSection(b))
	}
	return m.nameSections(r, names)
}

func (m *Layout) nameSections(r Reader, names uint32) error {
	if uint64(names) >= uint64(len(m.Sections)) {
		return fmt.Errorf("section names: no section %d: %w", names, ErrDamaged)
	}
	table, err := r.Bytes(m.Sections[names].Span(), maxSectionNames, "section names")
	if err != nil {
		return err
	}
	for i := range m.Sections {
		s := &m.Sections[i]
		s.Name = Text(table, uint64(s.nameAt), maxSectionName)
	}
	return nil
}

func decodeSection(b []byte) Section {
	le := binary.LittleEndian
	return Section{
		nameAt: le.Uint32(b), Type: elf.SectionType(le.Uint32(b[4:])), Flags: elf.SectionFlag(le.Uint64(b[8:])),
		Addr: le.Uint64(b[16:]), Off: le.Uint64(b[24:]), Size: le.Uint64(b[32:]),
		Link: le.Uint32(b[40:]),
	}
}

// Section returns the first section with one of these names and bytes in the file,
// the names in their order; nil for none.
func (m *Layout) Section(names ...string) *Section {
	for _, name := range names {
		i := slices.IndexFunc(m.Sections, func(s Section) bool { return s.Name == name && s.Type != elf.SHT_NOBITS })
		if i >= 0 {
			return &m.Sections[i]
		}
	}
	return nil
}

// Address turns an offset in the file into the address it was linked for, by the
// segments that have all of flags.
func (s Segments) Address(off uint64, flags elf.ProgFlag) (uint64, bool) {
	for _, p := range s {
		if p.Flags&flags == flags && off >= p.Off && off-p.Off < p.Filesz {
			return p.Vaddr + (off - p.Off), true
		}
	}
	return 0, false
}

// Span is where up to n bytes at an address lie in the file, by the segments that have
// all of flags; fewer at the end of the segment.
func (s Segments) Span(addr, n uint64, flags elf.ProgFlag) (Span, bool) {
	for _, p := range s {
		if off := addr - p.Vaddr; p.Flags&flags == flags && off < p.Filesz {
			return Span{p.Off + off, min(n, p.Filesz-off)}, true
		}
	}
	return Span{}, false
}

// Executable says whether an address is in a segment with code.
func (s Segments) Executable(addr uint64) bool {
	return slices.ContainsFunc(s, func(p elf.ProgHeader) bool { return p.Flags&elf.PF_X != 0 && addr-p.Vaddr < p.Memsz })
}
