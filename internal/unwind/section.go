package unwind

import (
	"cmp"
	"debug/elf"
	"encoding/binary"
	"slices"
	"sort"

	"stackshot/internal/cursor"
	"stackshot/internal/elffile"
)

// searchTable is the sorted table of .eh_frame_hdr.
type searchTable struct {
	entries []byte // pairs of i32 relative to base: start of code, address of its FDE
	base    uint64
}

const searchEntry = 8

// maxCIEs is how many CIEs are kept while a section is indexed. Real ones have a
// dozen.
const maxCIEs = 1 << 10

// offset returns where in the section at addr the last FDE that begins at or
// before pc is.
func (h *searchTable) find(pc uint64) (fdeAddr uint64, ok bool) {
	n := len(h.entries) / searchEntry
	at := func(i, field int) uint64 {
		return h.base + uint64(int32(binary.LittleEndian.Uint32(h.entries[i*searchEntry+field:])))
	}
	i := sort.Search(n, func(i int) bool { return at(i, 0) > pc })
	if i == 0 {
		return 0, false
	}
	return at(i-1, 4), true
}

// loadEHFrame takes .eh_frame by its section or, in a file stripped of sections,
// by what the program header of .eh_frame_hdr points at.
func (t *Table) loadEHFrame(file *elffile.Layout) error {
	s := &frameSection{name: ".eh_frame", eh: true}
	sec, data, err := t.sectionBytes(file, s.name)
	if err != nil {
		return err
	}
	if sec != nil {
		s.data, s.addr = data, sec.Addr
	}
	err = t.loadHeader(file, s)
	if len(s.data) == 0 {
		return err
	}
	if s.hdr == nil {
		if indexErr := s.index(); err == nil {
			err = indexErr
		}
	}
	t.sections = append(t.sections, s)
	return err
}

func (t *Table) loadDebugFrame(file *elffile.Layout) error {
	sec, data, err := t.sectionBytes(file, ".debug_frame", ".zdebug_frame")
	if sec == nil || err != nil {
		return err
	}
	s := &frameSection{name: sec.Name, data: data}
	err = s.index()
	t.sections = append(t.sections, s)
	return err
}

// loadHeader reads .eh_frame_hdr. A form other than the one all linkers write is
// no error: the section is then indexed as a whole.
func (t *Table) loadHeader(file *elffile.Layout, s *frameSection) error {
	p := &file.FrameHeader
	if p.Type != elf.PT_GNU_EH_FRAME {
		return nil
	}
	data, err := t.bytesAt(p.Vaddr, min(p.Filesz, maxSection))
	if err != nil {
		return err
	}
	c := cursor.Cursor{Data: data}
	version, ptrEnc, countEnc, tableEnc := c.U8(), c.U8(), c.U8(), c.U8()
	frames := s.pointer(&c, ptrEnc, p.Vaddr)
	if c.Bad || version != 1 || ptrEnc&0x70 != encPCRel || ptrEnc&encIndirect != 0 {
		return damaged(".eh_frame_hdr", 0, "not a header that says where .eh_frame is")
	}
	if len(s.data) == 0 {
		if s.data, err = t.bytesAt(frames, maxSection); err != nil {
			return err
		}
		s.addr = frames
	}
	if countEnc != 0x03 || tableEnc != encDataRel|0x0b {
		return nil
	}
	count := uint64(c.U32())
	if c.Bad || count > uint64(c.Left())/searchEntry {
		return damaged(".eh_frame_hdr", 8, "more entries than it has room for")
	}
	s.hdr = &searchTable{c.Take(count * searchEntry), p.Vaddr}
	return nil
}

// bytesAt returns up to n bytes of the file at a link-time address; fewer at the
// end of the segment.
func (t *Table) bytesAt(addr, n uint64) ([]byte, error) {
	at, ok := t.segments.Span(addr, n, 0)
	if !ok {
		return nil, damaged(".eh_frame_hdr", 0, "points outside the file's segments")
	}
	return t.code.Bytes(at, n, ".eh_frame_hdr")
}

// index lists every FDE. Damaged ones are left out; the error names the first.
func (s *frameSection) index() error {
	var first error
	note := func(err error) {
		if first == nil {
			first = err
		}
	}
	cies := make(map[uint64]*cie)
	for off := uint64(0); off+4 <= uint64(len(s.data)); {
		r, err := s.record(off)
		if err != nil {
			note(err)
			break // the next record's place is not known
		}
		off = r.next
		if r.end || s.isCIE(&r) {
			continue
		}
		f, err := s.fdeAt(&r, cies)
		if err != nil {
			note(err)
			continue
		}
		// A function that the linker dropped begins at 0.
		if f.begin != 0 && f.end > f.begin {
			s.all = append(s.all, indexEntry{f.begin, f.end, r.offset})
		}
	}
	slices.SortStableFunc(s.all, func(a, b indexEntry) int { return cmp.Compare(a.begin, b.begin) })
	return first
}

// find returns the FDE that covers pc; nil for none.
func (s *frameSection) find(pc uint64) (*fde, error) {
	var offset uint64
	if s.hdr != nil {
		addr, ok := s.hdr.find(pc)
		if !ok {
			return nil, nil
		}
		offset = addr - s.addr
	} else {
		i := sort.Search(len(s.all), func(i int) bool { return s.all[i].begin > pc })
		if i == 0 || pc >= s.all[i-1].end {
			return nil, nil
		}
		offset = s.all[i-1].offset
	}
	r, err := s.record(offset)
	if err != nil {
		return nil, err
	}
	if r.end || s.isCIE(&r) {
		return nil, s.fail(offset, "not an FDE")
	}
	f, err := s.fdeAt(&r, nil)
	if err != nil || pc < f.begin || pc >= f.end {
		return nil, err
	}
	return f, nil
}
