package kcdata

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// The payload of a TYPEDEFINITION is u32 type, u32 count, name[32], then for each field
// u8 flags, u8 element type, u16 offset, u32 size, name[32]. The size of an array is
// count<<16 | element size.
const (
	definitionHead  = 8 + descName
	definitionField = 8 + descName
	fieldIsArray    = 0x1
	fieldIsStruct   = 0x2
	fieldIsMerged   = 0x4
)

// oneChar and oneByte are the records that arrays of text and of bytes consist of. oneChar
// is an array of one char: of Apple's two decoders one would show a lone char as a number,
// and the other would write no JSON for it.
var (
	oneChar = []Field{{Name: "c", Elem: ElemChar, Count: 1}}
	oneByte = []Field{{Name: "b", Elem: ElemUint8}}
)

// definition is s as a file defines it, with the fields of one record. ok is false if it has
// no fields.
func (s Spec) definition() (_ Spec, ok bool) {
	switch {
	case s.Bytewise && s.Kind == KindString:
		s.Fields = oneChar
	case s.Bytewise:
		s.Fields = oneByte
	case s.Kind != KindStruct:
		return s, false
	}
	return s, len(s.Fields) > 0
}

// Definitions are the types that a file of ours defines, in ascending order. A file defines
// all of them before anything else, whether or not it holds such items.
func Definitions() []Type {
	var out []Type
	for t, s := range table {
		if _, ok := s.definition(); ok && t >= firstLinux && t <= lastLinux {
			out = append(out, t)
		}
	}
	slices.Sort(out)
	return out
}

// The ids of our own records.
const (
	firstLinux = 0x4C00
	lastLinux  = 0x4CFF
)

// byteRecord reports whether elements of size bytes are one-byte records (ok), and whether
// these are text.
func (s Spec) byteRecord(size int) (isText, ok bool) {
	if s.Bytewise && size == 1 {
		return s.Kind == KindString, true
	}
	ok = size == 1 && s.Kind == KindStruct && len(s.Fields) == 1 && s.Fields[0].Size() == 1
	return ok && s.Fields[0].Elem == ElemChar, ok
}

func (s Spec) definitionSize() int { return definitionHead + len(s.Fields)*definitionField }

// putDefinition fills b, of definitionSize bytes.
func (s Spec) putDefinition(b []byte) {
	binary.LittleEndian.PutUint32(b, uint32(s.Type))
	binary.LittleEndian.PutUint32(b[4:], uint32(len(s.Fields)))
	putName(b[8:definitionHead], s.Key)
	for i, f := range s.Fields {
		flags := byte(0)
		if len(s.Fields) == 1 {
			flags |= fieldIsStruct
		}
		if s.Merge {
			flags |= fieldIsMerged
		}
		f.put(b[definitionHead+i*definitionField:], flags)
	}
}

func (f Field) put(b []byte, flags byte) {
	size := uint32(f.Elem.Size())
	if f.Count > 0 {
		flags |= fieldIsArray
		size |= uint32(f.Count) << 16
	}
	b[0], b[1] = flags, byte(f.Elem)
	binary.LittleEndian.PutUint16(b[2:], uint16(f.Offset))
	binary.LittleEndian.PutUint32(b[4:], size)
	putName(b[8:definitionField], f.Name)
}

// putName fills b, which has 32 bytes, with a name of at most 31 bytes and NULs.
func putName(b []byte, name string) {
	n := copy(b[:maxName], name)
	clear(b[n:])
}

func parseDefinition(b []byte) (Spec, error) {
	if len(b) < definitionHead {
		return Spec{}, fmt.Errorf("%d bytes, the head alone has %d", len(b), definitionHead)
	}
	count := uint64(binary.LittleEndian.Uint32(b[4:]))
	if count > uint64(len(b)-definitionHead)/definitionField {
		return Spec{}, fmt.Errorf("%d fields in %d bytes", count, len(b))
	}
	if count > maxFields {
		return Spec{}, fmt.Errorf("%d fields, at most %d", count, maxFields)
	}
	name := cString(b[8 : definitionHead-1])
	s := Spec{Type: Type(binary.LittleEndian.Uint32(b)), Name: name, Key: name, Kind: KindStruct, InFile: true}
	s.Fields = make([]Field, 0, count)
	for i := range int(count) {
		f, present, err := parseField(b[definitionHead+i*definitionField:])
		if err != nil {
			return Spec{}, fmt.Errorf("field %d of %q: %w", i, name, err)
		}
		if present {
			s.Fields = append(s.Fields, f)
		}
	}
	return s, orderFields(s.Fields)
}

// orderFields sorts fields by offset and refuses fields that overlap. So the fields of a
// payload never outnumber its bytes. Otherwise a small file could define thousands of
// fields over one byte and use them in an array of a million elements.
func orderFields(fields []Field) error {
	slices.SortStableFunc(fields, func(a, b Field) int { return a.Offset - b.Offset })
	for i := 1; i < len(fields); i++ {
		if a, b := fields[i-1], fields[i]; a.End() > b.Offset {
			return fmt.Errorf("fields %q and %q overlap", a.Name, b.Name)
		}
	}
	return nil
}

// parseField reads one field. An array without elements is not present.
func parseField(b []byte) (f Field, present bool, err error) {
	f = Field{
		Name:   cString(b[8 : definitionField-1]),
		Elem:   ElemType(b[1]),
		Offset: int(binary.LittleEndian.Uint16(b[2:])),
	}
	size := binary.LittleEndian.Uint32(b[4:])
	present = true
	if b[0]&fieldIsArray != 0 {
		f.Count = int(size >> 16)
		size &= 0xffff
		present = f.Count > 0
	}
	if f.Elem.Size() == 0 || int64(size) != int64(f.Elem.Size()) {
		return Field{}, false, fmt.Errorf("element type %d of %d bytes", b[1], size)
	}
	return f, present, nil
}
