package kcdata

import (
	"bytes"
	"encoding/binary"
)

// Sizes of the wire form.
const (
	headerSize = 16
	alignment  = 16
	descName   = 32 // bytes of a desc's name, its NUL included

	padMask    = 0x0f
	hasPadding = 0x80
)

// Item is one item as read. Data is a part of the buffer that NewReader got, not a copy:
// nobody may change it.
type Item struct {
	Type   Type   // 0x20-0x2f read as TypeArray
	wire   Type   // type as on the wire
	Flags  uint64 // as on the wire; their meaning depends on the type
	Data   []byte // the payload without its padding
	Offset int    // of the header
	Depth  int    // containers around it; a begin or end is not inside its own container

	raw      []byte  // the payload with its padding
	elemSize int     // arrays
	editor   *Editor // that yielded it; nil: a Reader did
}

// Position is where the item lies, if an Editor yielded it.
func (it Item) Position() Position { return Position{it.editor, it.Offset} }

// ContainerType is the type named by a CONTAINER_BEGIN, TypeInvalid for others.
func (it Item) ContainerType() Type {
	if it.Type != TypeContainerBegin || len(it.Data) < 4 {
		return TypeInvalid
	}
	return Type(binary.LittleEndian.Uint32(it.Data))
}

// ContainerID is the id of a CONTAINER_BEGIN or CONTAINER_END, 0 for others.
func (it Item) ContainerID() uint64 {
	if it.Type != TypeContainerBegin && it.Type != TypeContainerEnd {
		return 0
	}
	return it.Flags
}

// Elem describes an array: its element type, the size of one element in bytes
// and their number. Data holds exactly size × count bytes.
func (it Item) Elem() (t Type, size, count int) {
	if it.Type != TypeArray {
		return TypeInvalid, 0, 0
	}
	return Type(it.Flags >> 32), it.elemSize, int(uint32(it.Flags))
}

// Of is the item's type. For an array of Bytewise text or bytes it is the type of the
// elements: older files had a plain item of that type instead of the array.
func (it Item) Of() Type {
	if t, size, _ := it.Elem(); it.Type == TypeArray && size <= 1 {
		if s, _ := Lookup(t); s.Bytewise {
			return t
		}
	}
	return it.Type
}

// Desc gives the name and value of a desc item: string, int32, uint32, int64,
// uint64 or []byte. ok is false for other items and for malformed descs.
func (it Item) Desc() (name string, value any, ok bool) {
	if it.Type < TypeStringDesc || it.Type > TypeBytesDesc {
		return "", nil, false
	}
	if len(it.Data) < descName+descMin(it.Type) || it.Data[descName-1] != 0 {
		return "", nil, false
	}
	name, b := cString(it.Data[:descName]), it.Data[descName:]
	switch it.Type {
	case TypeStringDesc:
		return name, cString(b), true
	case TypeUint32Desc:
		return name, binary.LittleEndian.Uint32(b), true
	case TypeUint64Desc:
		return name, binary.LittleEndian.Uint64(b), true
	case TypeInt32Desc:
		return name, int32(binary.LittleEndian.Uint32(b)), true
	case TypeInt64Desc:
		return name, int64(binary.LittleEndian.Uint64(b)), true
	}
	return name, b, true
}

// descElems are the element types of the values of descs.
var descElems = [...]ElemType{
	TypeStringDesc: ElemChar, TypeUint32Desc: ElemUint32, TypeUint64Desc: ElemUint64,
	TypeInt32Desc: ElemInt32, TypeInt64Desc: ElemInt64, TypeBytesDesc: ElemUint8,
}

// descMin is the size in bytes of the smallest value of a desc type. There may be no bytes.
func descMin(t Type) int {
	if t == TypeBytesDesc {
		return 0
	}
	return descElems[t].Size()
}

// cString is the text of b up to its first NUL.
func cString(b []byte) string {
	return string(untilNUL(b))
}

func untilNUL(b []byte) []byte {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		return b[:i]
	}
	return b
}

// padOf is the padding behind n bytes.
func padOf(n int) int { return -n & (alignment - 1) }
