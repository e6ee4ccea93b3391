package gopclntab

import (
	"debug/elf"
	"encoding/binary"
	"fmt"

	"stackshot/internal/elffile"
)

// sections are the names of those that hold the table.
var sections = []string{".gopclntab", ".data.rel.ro.gopclntab"}

// maxSearch is how many bytes of a file are searched for the start of the text:
// any number of sections may have the same bytes.
const maxSearch = 256 << 20

// Table is where the table of one file lies. It is constant.
type Table struct {
	Header // Text: link-time
	Name   string
	At     elffile.Span
}

// Open finds the table of a file; nil: it has none, and is no Go program. Errors name
// section and offset.
func Open(r elffile.Reader, m *elffile.Layout) (*Table, error) {
	s := m.Section(sections...)
	if s == nil {
		return nil, nil
	}
	b, err := r.Bytes(elffile.Span{Off: s.Off, Size: min(s.Size, HeaderSize)}, HeaderSize, s.Name)
	if err != nil {
		return nil, err
	}
	t := &Table{Name: s.Name, At: s.Span()}
	if t.Header, err = ParseHeader(b, s.Size); err == nil && t.NFunc == 0 {
		err = damaged(8, "no functions")
	}
	if err == nil && t.Text == 0 {
		t.Text, err = t.findText(r, m)
	}
	if err != nil {
		return nil, fmt.Errorf("%s at offset %#x: %w", s.Name, s.Off, err)
	}
	return t, nil
}

// Word reads a u32 of the table; 0 if there is none.
func (t *Table) Word(r elffile.Reader, off uint64) uint32 {
	var b [4]byte
	if off >= t.At.Size || t.At.Size-off < 4 || !r.Holds(t.At) {
		return 0
	}
	r.ReadAt(b[:], int64(t.At.Off+off))
	return binary.LittleEndian.Uint32(b[:])
}

// findText finds the address of runtime.text by moduledata, which has the first and
// the last program counter side by side: their difference is known from the table. In
// a position-independent file they may be relocations.
func (t *Table) findText(r elffile.Reader, m *elffile.Layout) (uint64, error) {
	word := func(off uint64) uint32 { return t.Word(r, off) }
	first := t.Entry(word, 0)
	size := t.Entry(word, t.NFunc) - first
	le := binary.LittleEndian
	left := uint64(maxSearch)
	for i := range m.Sections {
		s := &m.Sections[i]
		stride, field := 8, 0 // bytes: of a record, of the word in it
		if s.Type == elf.SHT_RELA {
			stride, field = 24, 16 // {place, kind, addend}
		} else if s.Type != elf.SHT_PROGBITS || s.Flags&elf.SHF_WRITE == 0 {
			continue
		}
		var text, minpc uint64
		found := false
		err := r.InParts(s.Span(), left, uint64(4096*stride), s.Name, func(b []byte) {
			for at := field; at+8 <= len(b) && size > 0 && !found; at += stride {
				maxpc := le.Uint64(b[at:])
				found = maxpc-minpc == size && m.Segments.Executable(minpc) && m.Segments.Executable(maxpc-1)
				text, minpc = minpc-first, maxpc
			}
		})
		if err != nil {
			continue
		}
		if left -= s.Size; found {
			return text, nil
		}
	}
	return 0, damaged(24, "no address of the text")
}
