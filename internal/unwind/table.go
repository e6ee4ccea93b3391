package unwind

import (
	"debug/elf"
	"fmt"
	"io"
	"slices"
	"unsafe"
)

const (
	maxSection = 128 << 20 // bytes taken of one section
	maxUnpack  = 16        // times a packed section may grow; call frames of real programs do threefold
	maxCode    = 1 << 12   // bytes of code looked at for one program counter
)

// A FormatError says what of an ELF file cannot be used, and where.
type FormatError struct {
	Section string // or "ELF header"
	Offset  uint64 // in the section
	What    string
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("%s at %#x: %s", e.Section, e.Offset, e.What)
}

// Table is what one ELF file says about unwinding. Addresses are those the file
// was linked for. It is safe for concurrent use, if its reader is.
type Table struct {
	arch     *arch
	segments []elf.ProgHeader // PT_LOAD, constant
	sections []*frameSection  // constant
	golang   *pclntab         // nil: no Go in it; constant
	code     io.ReaderAt      // for a few bytes of code where no table covers it
	problems []error          // constant

	rows      memo[rowResult]
	restorers memo[bool]
	paths     memo[pathResult]
	frames    memo[frameResult]
}

type rowResult struct {
	row *row
	err error
}

// NewTable reads the unwind tables of an ELF file of size bytes, of amd64 or
// arm64. It keeps r to read code where no table covers it: such reads happen
// during Unwind. A file without tables is not an error; damaged tables are left
// out and told by Problems.
func NewTable(r io.ReaderAt, size int64) (*Table, error) {
	bounded := io.NewSectionReader(r, 0, max(size, 0))
	if err := checkHeader(bounded, size); err != nil {
		return nil, err
	}
	file, err := elf.NewFile(bounded)
	if err != nil {
		return nil, fmt.Errorf("ELF header: %w", err)
	}
	t := &Table{code: bounded}
	switch {
	case file.Machine == elf.EM_X86_64:
		t.arch = &amd64
	case file.Machine == elf.EM_AARCH64:
		t.arch = &arm64
	}
	if t.arch == nil {
		return nil, &FormatError{"ELF header", 0, fmt.Sprintf("%v: only amd64 and arm64 are unwound", file.Machine)}
	}
	for _, p := range file.Progs {
		if p.Type == elf.PT_LOAD && p.Memsz >= p.Filesz && inside(p.Off, p.Filesz, size) {
			t.segments = append(t.segments, p.ProgHeader)
		}
	}
	t.load(file)
	return t, nil
}

func (t *Table) load(file *elf.File) {
	if err := t.loadGo(file); err != nil {
		t.problems = append(t.problems, err)
	}
	if err := t.loadEHFrame(file); err != nil {
		t.problems = append(t.problems, err)
	}
	// Go's .debug_frame says no more than its pclntab.
	if t.golang != nil {
		return
	}
	if err := t.loadDebugFrame(file); err != nil {
		t.problems = append(t.problems, err)
	}
}

// Problems returns what could not be used of the file's tables, each naming
// section and offset.
func (t *Table) Problems() []error { return slices.Clone(t.problems) }

// Cost is how many bytes of the file the table holds.
func (t *Table) Cost() int64 {
	n := 0
	for _, s := range t.sections {
		n += cap(s.data) + cap(s.all)*int(unsafe.Sizeof(indexEntry{}))
	}
	if t.golang != nil {
		n += cap(t.golang.data)
	}
	return int64(n)
}

// AddrOf translates an offset in the file, of code, to the address it was linked
// for.
func (t *Table) AddrOf(offset uint64) (addr uint64, ok bool) {
	for _, p := range t.segments {
		if p.Flags&elf.PF_X != 0 && offset >= p.Off && offset-p.Off < p.Filesz {
			return p.Vaddr + (offset - p.Off), true
		}
	}
	return 0, false
}

// executable says whether addr is in a segment with code.
func (t *Table) executable(addr uint64) bool {
	for _, p := range t.segments {
		if p.Flags&elf.PF_X != 0 && addr-p.Vaddr < p.Memsz {
			return true
		}
	}
	return false
}

// codeAt reads up to n bytes of code; fewer at the end of its segment. What failed
// once may be read another time: it is not to be remembered.
func (t *Table) codeAt(addr uint64, n int) ([]byte, error) {
	for _, p := range t.segments {
		if p.Flags&elf.PF_X == 0 || addr-p.Vaddr >= p.Filesz {
			continue
		}
		off := addr - p.Vaddr
		buf := make([]byte, min(uint64(n), p.Filesz-off))
		got, err := t.code.ReadAt(buf, int64(p.Off+off))
		if err == io.EOF {
			err = nil
		}
		return buf[:got], err
	}
	return nil, nil
}

// rowAt returns the rules that hold at addr, a link-time address; nil without an
// error where no table covers it.
func (t *Table) rowAt(addr uint64, w *Work) (*row, error) {
	got, ok := t.rows.get(addr)
	switch {
	case ok:
	case w.over():
		return nil, errWork // not for good
	default:
		got.row, got.err = t.findRow(addr, w)
		t.rows.put(addr, got)
	}
	return got.row, got.err
}

func (t *Table) findRow(addr uint64, w *Work) (*row, error) {
	if t.golang != nil {
		if row, err := t.golang.rowAt(addr); row != nil || err != nil {
			return row, err
		}
	}
	var first error
	for _, s := range t.sections {
		row, err := s.rowAt(addr, w)
		if row != nil {
			return row, nil
		}
		if first == nil {
			first = err
		}
	}
	return nil, first
}

// firstSection returns the first of these names that the file has, with its
// contents; nil: it has none.
func firstSection(file *elf.File, names ...string) (*elf.Section, []byte, error) {
	for _, name := range names {
		if s := file.Section(name); s != nil && s.Type != elf.SHT_NOBITS {
			data, err := sectionBytes(s)
			return s, data, err
		}
	}
	return nil, nil, nil
}

// sectionBytes returns a section's contents, decompressed.
func sectionBytes(s *elf.Section) ([]byte, error) {
	most := uint64(maxSection)
	if s.Flags&elf.SHF_COMPRESSED != 0 {
		most = min(most, maxUnpack*s.FileSize+4096)
	}
	if s.Size > most || s.FileSize > maxSection {
		return nil, &FormatError{s.Name, 0, fmt.Sprintf("%d bytes in %d of the file, at most %d are read", s.Size, s.FileSize, most)}
	}
	// What the file really has is read in one piece: growing takes five times as much.
	if n := int64(s.FileSize); s.Flags&elf.SHF_COMPRESSED == 0 && s.FileSize == s.Size && n > 0 {
		if _, err := s.ReadAt(make([]byte, 1), n-1); err == nil {
			data := make([]byte, n)
			if _, err := s.ReadAt(data, 0); err != nil && err != io.EOF {
				return nil, fmt.Errorf("%s: %w", s.Name, err)
			}
			return data, nil
		}
	}
	// Not Section.Data: it trusts the size that a compressed section claims.
	data, err := io.ReadAll(io.LimitReader(s.Open(), int64(most)))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Name, err)
	}
	return data, nil
}
