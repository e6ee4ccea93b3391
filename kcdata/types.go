package kcdata

import "fmt"

// Type is an item's type id, or a buffer's magic.
type Type uint32

// Magics: the type of a buffer's first item, and of its last.
const (
	MagicStackshot      Type = 0x59a25807
	MagicDeltaStackshot Type = 0xDE17A59A
	MagicCompressed     Type = 0x434f4d50
	MagicCrashinfo      Type = 0xDEADF157
	MagicBTInfo         Type = 0x46414E47
	MagicOSReason       Type = 0x53A20900
	MagicXNUPost        Type = 0x1e21c09f
	BufferEnd           Type = 0xF19158ED
)

// Generic types, with a meaning in every kind of buffer.
const (
	TypeInvalid           Type = 0x0
	TypeStringDesc        Type = 0x1  // name[32], string
	TypeUint32Desc        Type = 0x2  // name[32], u32
	TypeUint64Desc        Type = 0x3  // name[32], u64
	TypeInt32Desc         Type = 0x4  // name[32], s32
	TypeInt64Desc         Type = 0x5  // name[32], s64
	TypeBytesDesc         Type = 0x6  // name[32], bytes
	TypeArray             Type = 0x11 // every array reads as this; on the wire only in old files
	TypeDefinition        Type = 0x12 // type, count, name[32], count × field
	TypeContainerBegin    Type = 0x13 // container type; flags: its id
	TypeContainerEnd      Type = 0x14 // flags: the id of the container it closes
	TypeArrayPad0         Type = 0x20 // 0x20-0x2f: array with 0-15 bytes of padding
	TypeArrayPadF         Type = 0x2f
	TypeLibraryLoadinfo   Type = 0x30
	TypeLibraryLoadinfo64 Type = 0x31
	TypeTimebase          Type = 0x32 // Timebase
	TypeMachAbsoluteTime  Type = 0x33 // u64 ticks
	TypeUsecsSinceEpoch   Type = 0x35 // u64
	TypeNested            Type = 0x38 // a whole buffer
)

// IsMagic reports whether t begins a buffer of a known kind.
func (t Type) IsMagic() bool {
	switch t {
	case MagicStackshot, MagicDeltaStackshot, MagicCompressed, MagicCrashinfo,
		MagicBTInfo, MagicOSReason, MagicXNUPost:
		return true
	}
	return false
}

// isArray reports whether t is an array on the wire, in either form.
func (t Type) isArray() bool { return t == TypeArray || t.isCompactArray() }

func (t Type) isCompactArray() bool { return t >= TypeArrayPad0 && t <= TypeArrayPadF }

// isStructural reports whether an item of type t carries structure rather than a payload.
// Only the writer method for t may write such an item.
func (t Type) isStructural() bool {
	return t == TypeInvalid || t == BufferEnd || t.IsMagic() || t.isArray() ||
		t == TypeContainerBegin || t == TypeContainerEnd
}

// String is the name in the spec table, or the number in hexadecimal.
func (t Type) String() string {
	if s, ok := Lookup(t); ok {
		return s.Name
	}
	return fmt.Sprintf("%#x", uint32(t))
}
