//go:build linux

package userlab

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"sort"
)

// A span is what one FDE covers, addresses as in the ELF file.
type span struct{ start, end uint64 }

// errFrames says that a frame section makes no sense.
var errFrames = errors.New("userlab: unwinding tables cannot be read")

// spansOf lists what the unwinding tables of a file cover, ascending. It reads
// no rules: that gdb found a caller by a rule is all that the judge must know.
func spansOf(f *elf.File) ([]span, error) {
	var all []span
	for _, name := range []string{".eh_frame", ".debug_frame"} {
		s := f.Section(name)
		if s == nil {
			s = f.Section(".z" + name[1:])
		}
		if s == nil || s.Type == elf.SHT_NOBITS {
			continue
		}
		data, err := s.Data()
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", errFrames, name, err)
		}
		t := table{data: data, addr: s.Addr, order: f.ByteOrder, word: 8, eh: name == ".eh_frame"}
		if f.Class == elf.ELFCLASS32 {
			t.word = 4
		}
		spans, err := t.spans()
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", errFrames, name, err)
		}
		all = append(all, spans...)
	}
	sort.Slice(all, func(i, j int) bool { return all[i].start < all[j].start })
	return all, nil
}

func covers(spans []span, addr uint64) bool {
	i := sort.Search(len(spans), func(i int) bool { return spans[i].start > addr })
	return i > 0 && addr < spans[i-1].end
}

// A table is one section of call frame information.
type table struct {
	data  []byte
	addr  uint64
	order binary.ByteOrder
	word  int
	eh    bool // .eh_frame; else .debug_frame, whose addresses are plain
}

var errShort = errors.New("short")

func (t *table) spans() ([]span, error) {
	var all []span
	encodings := map[int]byte{} // by offset of the CIE
	for at := 0; at+4 <= len(t.data); {
		size := int(t.order.Uint32(t.data[at:]))
		body := at + 4
		if size == 0 && t.eh {
			at = body // an object file's own end
			continue
		}
		if size < 4 || body+size > len(t.data) {
			return nil, fmt.Errorf("entry at %#x: %w", at, errShort)
		}
		entry := t.data[body : body+size]
		id := int(t.order.Uint32(entry))
		switch cie := t.cieOf(id, body); {
		case cie < 0:
			encodings[at] = t.encoding(entry[4:])
		default:
			s, err := t.fde(body+4, entry[4:], encodings[cie])
			if err != nil {
				return nil, fmt.Errorf("FDE at %#x: %w", at, err)
			}
			all = append(all, s)
		}
		at = body + size
	}
	return all, nil
}

// cieOf gives the offset of an FDE's CIE, or -1 for a CIE.
func (t *table) cieOf(id, body int) int {
	switch {
	case t.eh && id == 0, !t.eh && uint32(id) == 0xffffffff:
		return -1
	case t.eh:
		return body - id
	}
	return id
}

// encoding reads from a CIE how its FDEs write addresses (DW_EH_PE).
func (t *table) encoding(cie []byte) byte {
	if len(cie) < 2 {
		return 0
	}
	end := bytes.IndexByte(cie[1:], 0)
	if !t.eh || end < 1 || cie[1] != 'z' {
		return 0
	}
	augmentation, rest := cie[1:1+end], cie[end+2:]
	for range 2 { // code and data alignment
		_, n := binary.Uvarint(rest)
		rest = rest[max(n, 0):]
	}
	_, n := binary.Uvarint(rest) // return address register
	rest = rest[max(n, 0):]
	_, n = binary.Uvarint(rest) // length of what follows
	rest = rest[max(n, 0):]
	for _, c := range augmentation[1:] {
		switch {
		case len(rest) == 0:
			return 0
		case c == 'R':
			return rest[0]
		case c == 'L':
			rest = rest[1:]
		case c == 'P':
			rest = rest[min(1+t.width(rest[0]), len(rest)):]
		}
	}
	return 0
}

// width is that of an address in bytes.
func (t *table) width(encoding byte) int {
	switch encoding & 0xf {
	case 2, 0xa:
		return 2
	case 3, 0xb:
		return 4
	case 4, 0xc:
		return 8
	}
	return t.word
}

func (t *table) fde(at int, fde []byte, encoding byte) (span, error) {
	n := t.width(encoding)
	if len(fde) < 2*n {
		return span{}, errShort
	}
	start := t.number(fde, n, encoding&8 != 0)
	if encoding&0x70 == 0x10 { // relative to itself
		start += t.addr + uint64(at)
	}
	if t.word == 4 {
		start = uint64(uint32(start))
	}
	return span{start, start + t.number(fde[n:], n, false)}, nil
}

func (t *table) number(b []byte, n int, signed bool) uint64 {
	var v uint64
	switch n {
	case 2:
		v = uint64(t.order.Uint16(b))
	case 4:
		v = uint64(t.order.Uint32(b))
	default:
		v = t.order.Uint64(b)
	}
	if shift := 64 - 8*n; signed {
		v = uint64(int64(v<<shift) >> shift)
	}
	return v
}
