package unwind

import (
	"stackshot/internal/cursor"
)

// cie is a common information entry, as far as it matters here.
type cie struct {
	codeAlign    uint64
	dataAlign    int64
	retReg       uint64
	encoding     uint8 // of pointers in its FDEs
	augmented    bool  // its FDEs have augmentation data
	signal       bool  // 'S': its FDEs are frames the kernel made
	instructions []byte
}

// fde is a frame description entry.
type fde struct {
	begin, end   uint64
	cie          *cie
	instructions []byte
}

// Pointer encodings of .eh_frame (LSB core specification, DWARF extensions).
const (
	encAbsolute = 0x00
	encPCRel    = 0x10
	encDataRel  = 0x30
	encIndirect = 0x80
	encOmit     = 0xff
)

const (
	// maxRecord bounds one record. The largest of real programs have 20 KiB.
	maxRecord = 1 << 20
	// maxAugmentation bounds a CIE's letters: a million FDEs may name it.
	maxAugmentation = 32
)

// frameSection is .eh_frame or .debug_frame.
type frameSection struct {
	name string
	data []byte
	addr uint64 // link-time address of data
	eh   bool
	hdr  *searchTable // nil: index holds every FDE
	all  []indexEntry // ascending by begin
}

type indexEntry struct {
	begin, end uint64
	offset     uint64 // of the FDE in data
}

func (s *frameSection) fail(offset uint64, format string, args ...any) error {
	return damaged(s.name, offset, format, args...)
}

// record is the frame of a CIE or FDE: its contents after the length.
type record struct {
	offset uint64        // of the length
	body   cursor.Cursor // over the whole section, after the CIE id; ends with the record
	idPos  uint64
	id     uint64
	next   uint64 // offset of the record behind
	end    bool   // the terminator
}

func (s *frameSection) record(offset uint64) (record, error) {
	r := record{offset: offset}
	if offset >= uint64(len(s.data)) {
		return r, s.fail(offset, "outside the section's %d bytes", len(s.data))
	}
	c := cursor.Cursor{Data: s.data, Pos: int(offset)}
	length, wide := c.Length()
	r.idPos = uint64(c.Pos)
	if c.Bad || length > uint64(c.Left()) || length > maxRecord {
		return r, s.fail(offset, "a record of %d bytes", length)
	}
	r.next = r.idPos + length
	if length == 0 {
		r.end = true
		return r, nil
	}
	c.Data = s.data[:r.next]
	if wide && !s.eh {
		r.id = c.U64()
	} else if r.id = uint64(c.U32()); r.id == 0xffffffff {
		r.id = ^uint64(0)
	}
	if c.Bad {
		return r, s.fail(offset, "a record of %d bytes", length)
	}
	r.body = c
	return r, nil
}

func (s *frameSection) isCIE(r *record) bool {
	if s.eh {
		return r.id == 0
	}
	return r.id == ^uint64(0)
}

// cieOffset returns where the CIE of an FDE is.
func (s *frameSection) cieOffset(r *record) uint64 {
	if s.eh {
		return r.idPos - r.id
	}
	return r.id
}

func (s *frameSection) cieAt(offset uint64) (*cie, error) {
	r, err := s.record(offset)
	if err != nil {
		return nil, err
	}
	if r.end || !s.isCIE(&r) {
		return nil, s.fail(offset, "not a CIE")
	}
	c := &r.body
	out := &cie{encoding: encAbsolute}
	version, augmentation := c.U8(), string(c.Text(maxAugmentation))
	if version == 4 {
		if size, segment := c.U8(), c.U8(); size != 8 || segment != 0 {
			return nil, s.fail(offset, "addresses of %d bytes, segments of %d", size, segment)
		}
	}
	out.codeAlign, out.dataAlign = c.ULEB(), c.SLEB()
	if version == 1 {
		out.retReg = uint64(c.U8())
	} else {
		out.retReg = c.ULEB()
	}
	if version < 1 || version > 4 || version == 2 {
		return nil, s.fail(offset, "CIE version %d", version)
	}
	if err := s.augmentation(c, out, augmentation, offset); err != nil {
		return nil, err
	}
	if c.Bad {
		return nil, s.fail(offset, "the CIE ends early")
	}
	out.instructions = c.Data[c.Pos:]
	return out, nil
}

// augmentation reads the part of a CIE that says how its FDEs differ.
func (s *frameSection) augmentation(c *cursor.Cursor, out *cie, text string, offset uint64) error {
	if text == "" {
		return nil
	}
	if text[0] != 'z' {
		return s.fail(offset, "augmentation %.8q", text)
	}
	out.augmented = true
	data := cursor.Cursor{Data: c.Take(c.ULEB())}
	for _, what := range text[1:] {
		switch what {
		case 'S':
			out.signal = true
		case 'L':
			data.U8()
		case 'R':
			out.encoding = data.U8()
		case 'P':
			s.pointer(&data, data.U8(), 0)
		case 'B', 'G': // arm64: pointer authentication with key B, tagged stack
		default: // what follows cannot be told; the length is known
			return nil
		}
	}
	if data.Bad {
		return s.fail(offset, "augmentation %.8q ends early", text)
	}
	return nil
}

// pointer reads a value with a pointer encoding; base is the address of the first
// byte of c.
func (s *frameSection) pointer(c *cursor.Cursor, encoding uint8, base uint64) uint64 {
	if encoding == encOmit {
		return 0
	}
	at := base + uint64(c.Pos)
	var v uint64
	switch encoding & 0x0f {
	case 0x00, 0x04, 0x08, 0x0c:
		v = c.U64()
	case 0x01:
		v = c.ULEB()
	case 0x02:
		v = uint64(c.U16())
	case 0x03:
		v = uint64(c.U32())
	case 0x09:
		v = uint64(c.SLEB())
	case 0x0a:
		v = uint64(int16(c.U16()))
	case 0x0b:
		v = uint64(int32(c.U32()))
	default:
		c.Bad = true
	}
	if encoding&0x70 == encPCRel {
		v += at
	}
	return v
}

// fdeAt reads the FDE at offset. cies keeps the CIEs already read, nil for none.
func (s *frameSection) fdeAt(r *record, cies map[uint64]*cie) (*fde, error) {
	at := s.cieOffset(r)
	common := cies[at]
	if common == nil {
		var err error
		if common, err = s.cieAt(at); err != nil {
			return nil, err
		}
		if cies != nil {
			if len(cies) >= maxCIEs {
				clear(cies)
			}
			cies[at] = common
		}
	}
	if form := common.encoding & 0xf0; form != encAbsolute && form != encPCRel {
		return nil, s.fail(at, "pointer encoding %#x", common.encoding)
	}
	c := &r.body
	out := &fde{cie: common, begin: s.pointer(c, common.encoding, s.addr)}
	out.end = out.begin + s.pointer(c, common.encoding&0x0f, 0)
	if common.augmented {
		c.Take(c.ULEB())
	}
	if c.Bad || out.end < out.begin {
		return nil, s.fail(r.offset, "an FDE that ends early or has no range")
	}
	out.instructions = c.Data[c.Pos:]
	return out, nil
}
