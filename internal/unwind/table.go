package unwind

import (
	"debug/elf"
	"fmt"
	"io"
	"slices"
	"sync"
	"unsafe"

	"stackshot/internal/elffile"
)

const (
	maxSection = 128 << 20 // bytes taken of one section
	maxCode    = 1 << 12   // bytes of code looked at for one program counter
)

// damaged is the error of what cannot be used of an ELF file: of which section, and
// at which offset in it.
func damaged(section string, offset uint64, format string, args ...any) error {
	return fmt.Errorf("%s at %#x: %s", section, offset, fmt.Sprintf(format, args...))
}

// Table is what one ELF file says about unwinding. Addresses are those the file
// was linked for. It is safe for concurrent use, if its reader is.
type Table struct {
	arch     *arch
	segments elffile.Segments // constant
	sections []*frameSection  // constant
	golang   *pclntab         // nil: no Go in it; constant
	code     elffile.Reader   // for a few bytes of code where no table covers it
	problems []error          // constant

	rows      memo[result[*row]]
	restorers memo[bool]
	paths     memo[result[codePath]]
	frames    memo[frameResult]
}

// NewTable reads the unwind tables of an ELF file of size bytes, of amd64 or arm64. It
// keeps r: Unwind reads code through it that no table covers. A file without tables is
// not an error. NewTable leaves out damaged tables; Problems lists them.
func NewTable(r io.ReaderAt, size int64) (*Table, error) {
	in := elffile.NewReader(r, size)
	file, err := elffile.Read(in)
	if err != nil {
		return nil, fmt.Errorf("ELF header: %w", err)
	}
	t := &Table{code: in}
	switch file.Machine {
	case elf.EM_X86_64:
		t.arch = &amd64
	case elf.EM_AARCH64:
		t.arch = &arm64
	default:
		return nil, damaged("ELF header", 0, "%v: only amd64 and arm64 are unwound", file.Machine)
	}
	t.segments = slices.DeleteFunc(file.Segments, func(p elf.ProgHeader) bool {
		return p.Memsz < p.Filesz || !in.Holds(elffile.Span{Off: p.Off, Size: p.Filesz})
	})
	t.load(file)
	return t, nil
}

func (t *Table) load(file *elffile.Layout) {
	note := func(err error) {
		if err != nil {
			t.problems = append(t.problems, err)
		}
	}
	note(t.loadGo(file))
	note(t.loadEHFrame(file))
	// Go's .debug_frame says no more than its pclntab.
	if t.golang == nil {
		note(t.loadDebugFrame(file))
	}
}

// Problems returns the errors of the file's tables that cannot be used. Each names
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
	return t.segments.Address(offset, elf.PF_X)
}

// codeAt reads up to n bytes of code; fewer at the end of its segment. A read that
// fails may succeed another time, so callers do not remember a failure.
func (t *Table) codeAt(addr, n uint64) ([]byte, error) {
	at, ok := t.segments.Span(addr, n, elf.PF_X)
	if !ok {
		return nil, nil
	}
	buf := make([]byte, at.Size)
	got, err := t.code.ReadAt(buf, int64(at.Off))
	if err == io.EOF {
		err = nil
	}
	return buf[:got], err
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
		got.found, got.err = t.findRow(addr, w)
		t.rows.put(addr, got)
	}
	return got.found, got.err
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

// sectionBytes returns the first of these sections that the file has, with its
// contents, unpacked; nil: it has none.
func (t *Table) sectionBytes(file *elffile.Layout, names ...string) (*elffile.Section, []byte, error) {
	s := file.Section(names...)
	if s == nil {
		return nil, nil, nil
	}
	packed, err := t.code.Packed(s, maxSection)
	if err != nil {
		return s, nil, err
	}
	data, err := packed.Unpack(maxSection)
	return s, data, err
}

const maxMemo = 1 << 13 // addresses that one memo keeps; a row may have some KiB

// result is what was found out, or why it was not.
type result[T any] struct {
	found T
	err   error
}

// memo keeps what was found out about an address. It is safe for concurrent use;
// the zero value is empty.
type memo[T any] struct {
	mu    sync.Mutex
	known map[uint64]T
}

func (m *memo[T]) get(addr uint64) (v T, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, ok = m.known[addr]
	return v, ok
}

// put first forgets all others if there are too many.
func (m *memo[T]) put(addr uint64, v T) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known == nil {
		m.known = make(map[uint64]T)
	}
	if len(m.known) >= maxMemo {
		clear(m.known)
	}
	m.known[addr] = v
}
