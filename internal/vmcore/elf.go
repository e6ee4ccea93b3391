package vmcore

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
)

const (
	elfHeader     = 64
	programHeader = 56
	sectionHeader = 64

	// maxSegments bounds how many program headers are read. makedumpfile -E starts a segment behind 256 pages
	// that it leaves out, so this many stand for 256 GiB in the worst case, and for far more in real dumps.
	maxSegments = 1 << 18
	// maxNoteSegments is far more than the one that dumps have.
	maxNoteSegments = 1 << 10

	// manyHeaders in e_phnum (PN_XNUM) says that sh_info of section 0 has the number.
	manyHeaders = 0xffff
	// outOfSpace in e_flags is makedumpfile's DUMP_ELF_INCOMPLETE.
	outOfSpace = 1
)

// segment is a PT_LOAD that has a physical address.
type segment struct {
	pa     uint64
	memory uint64 // bytes of the machine, at least inFile
	inFile uint64 // bytes in the file
	off    uint64 // in the file
}

// loads is what the program headers of a dump say.
type loads struct {
	segments []segment
	notes    []segment // off and inFile alone
	count    int       // PT_LOADs
	zero     int       // PT_LOADs at physical address 0
	unplaced int       // PT_LOADs without a physical address
}

func openELF(s *source) (*Core, error) {
	var h [elfHeader]byte
	if err := s.read(h[:], 0, "ELF header"); err != nil {
		return nil, err
	}
	le := binary.LittleEndian
	c := &Core{about: about{format: "elf"}}
	switch machine := elf.Machine(le.Uint16(h[18:])); {
	case h[elf.EI_CLASS] != byte(elf.ELFCLASS64) || h[elf.EI_DATA] != byte(elf.ELFDATA2LSB):
		return nil, fmt.Errorf("%s: offset 4: not a 64-bit little-endian ELF file", s.path)
	case machine == elf.EM_X86_64:
		c.arch = "amd64"
	case machine == elf.EM_AARCH64:
		c.arch = "arm64"
	default:
		return nil, fmt.Errorf("%s: offset 0x12: a dump of %v; amd64 and arm64 are read", s.path, machine)
	}
	if t := elf.Type(le.Uint16(h[16:])); t != elf.ET_CORE {
		return nil, fmt.Errorf("%s: offset 0x10: an ELF file of type %v, not a core", s.path, t)
	}
	l, err := readLoads(s, &h)
	if err != nil {
		return nil, err
	}
	if le.Uint32(h[48:])&outOfSpace != 0 {
		c.flaw(fmt.Errorf("%s: incomplete: makedumpfile ran out of space", s.path))
	}
	if l.unplaced > 0 {
		c.flaw(fmt.Errorf("%s: %d segments of %d have no physical address and are not read", s.path, l.unplaced, l.count))
	}
	var n notes
	for _, g := range l.notes {
		if err := n.read(s, g.off, g.inFile); err != nil {
			c.flaw(err)
		}
	}
	c.takeNotes(s, &n, 0)
	m := &elfMemory{source: s}
	c.memory = m
	return c, m.place(l.segments)
}

// readLoads reads the program headers.
func readLoads(s *source, h *[elfHeader]byte) (*loads, error) {
	le := binary.LittleEndian
	off, n := le.Uint64(h[32:]), uint64(le.Uint16(h[56:]))
	if size := le.Uint16(h[54:]); size != programHeader {
		return nil, s.damaged(54, "program headers of %d bytes, not %d", size, programHeader)
	}
	if n == manyHeaders {
		var first [sectionHeader]byte
		if err := s.read(first[:], le.Uint64(h[40:]), "section header 0"); err != nil {
			return nil, err
		}
		n = uint64(le.Uint32(first[44:]))
	}
	if !s.holds(off, n*programHeader) {
		return nil, s.damaged(off, "%d program headers: the file ends at %#x", n, s.size)
	}
	if n > maxSegments {
		return nil, fmt.Errorf("%s: offset %#x: %d program headers, at most %d are read", s.path, off, n, maxSegments)
	}
	l := &loads{}
	var some [1024 * programHeader]byte
	for ; n > 0; n -= min(n, 1024) {
		b := some[:min(n, 1024)*programHeader]
		if err := s.read(b, off, "program headers"); err != nil {
			return nil, err
		}
		for i := 0; i < len(b); i += programHeader {
			if err := l.add(s, off+uint64(i), b[i:i+programHeader]); err != nil {
				return nil, err
			}
		}
		off += uint64(len(b))
	}
	switch {
	case l.zero == l.count && l.count > 1:
		return nil, fmt.Errorf("%s: all %d segments have physical address 0: the core of a process, not of a machine", s.path, l.count)
	case len(l.segments) == 0:
		return nil, fmt.Errorf("%s: no segment has a physical address", s.path)
	}
	return l, nil
}

// add takes the program header that lies at off.
func (l *loads) add(s *source, off uint64, b []byte) error {
	le := binary.LittleEndian
	g := segment{off: le.Uint64(b[8:]), pa: le.Uint64(b[24:]), inFile: le.Uint64(b[32:])}
	g.memory = max(le.Uint64(b[40:]), g.inFile)
	switch elf.ProgType(le.Uint32(b)) {
	case elf.PT_NOTE:
		if len(l.notes) == maxNoteSegments {
			return s.damaged(off, "more than %d segments of notes", maxNoteSegments)
		}
		l.notes = append(l.notes, g)
		return nil
	case elf.PT_LOAD:
	default:
		return nil
	}
	if g.inFile > 0 && g.off+g.inFile < g.off {
		return s.damaged(off, "a segment of %#x bytes at offset %#x of the file", g.inFile, g.off)
	}
	l.count++
	if g.pa == 0 {
		l.zero++
	}
	switch {
	case g.memory == 0:
	case g.pa >= maxPhys || g.memory > maxPhys-g.pa:
		l.unplaced++
	case !l.extend(g):
		l.segments = append(l.segments, g)
	}
	return nil
}

// extend makes the last segment longer if g goes on where it ends.
func (l *loads) extend(g segment) bool {
	if len(l.segments) == 0 {
		return false
	}
	last := &l.segments[len(l.segments)-1]
	if last.inFile != last.memory || last.pa+last.memory != g.pa || last.off+last.inFile != g.off || g.inFile == 0 {
		return false
	}
	last.memory += g.memory
	last.inFile += g.inFile
	return true
}
