package kcdata

import (
	"cmp"
	"sort"
)

// Kind is the layout of a payload.
type Kind uint8

// The kinds. The payload of a scalar is the bare number. KindStruct has Fields.
const (
	KindBytes Kind = iota // opaque, or a layout this package does not know
	KindStruct
	KindString // up to the first NUL, or to the end
	KindUint8
	KindInt32
	KindUint32
	KindInt64
	KindUint64
	KindContainer  // the container type named by a CONTAINER_BEGIN
	KindMagic      // begins a buffer
	KindDesc       // a name of 32 bytes, then the value
	KindStructural // arrays, definitions, container marks, the end marker
	KindNested     // a whole buffer
)

// elem is the element type of a scalar kind, 0 for all others.
func (k Kind) elem() ElemType { return kindElems[k] }

var kindElems = [KindNested + 1]ElemType{
	KindUint8: ElemUint8, KindInt32: ElemInt32, KindUint32: ElemUint32, KindInt64: ElemInt64, KindUint64: ElemUint64,
}

// ElemType is the type of a field's elements, numbered as on the wire.
type ElemType uint8

// The element types of a TYPEDEFINITION.
const (
	ElemChar   ElemType = 1
	ElemInt8   ElemType = 2
	ElemUint8  ElemType = 3
	ElemInt16  ElemType = 4
	ElemUint16 ElemType = 5
	ElemInt32  ElemType = 6
	ElemUint32 ElemType = 7
	ElemInt64  ElemType = 8
	ElemUint64 ElemType = 9
)

var (
	elemNames = [1 << 8]string{
		"", "char", "int8_t", "uint8_t", "int16_t", "uint16_t", "int32_t", "uint32_t", "int64_t", "uint64_t",
	}
	elemSizes = [1 << 8]int{0, 1, 1, 1, 2, 2, 4, 4, 8, 8}
)

// String is the C name of the element type.
func (e ElemType) String() string { return cmp.Or(elemNames[e], "invalid") }

// Size is the element's size in bytes, 0 for an invalid element type.
func (e ElemType) Size() int { return elemSizes[e] }

// Field is one field of a struct.
type Field struct {
	Name   string // at most 31 bytes; Apple's longer names are cut, as its decoder cuts them
	Elem   ElemType
	Offset int // from the start of the payload
	Count  int // 0: a scalar; else an array of Count elements
}

// Size is the field's size in bytes.
func (f Field) Size() int { return f.Elem.Size() * max(f.Count, 1) }

// End is the offset just behind the field.
func (f Field) End() int { return f.Offset + f.Size() }

// Spec describes one type id. It is all that writer, reader and text know of it.
type Spec struct {
	Type   Type
	Name   string // the C constant without its prefix
	Key    string // the key under which Apple's decoder prints it
	Kind   Kind
	Fields []Field // ascending and without overlap
	Sizes  []int   // the known versions' sizes, ascending; nil: any
	Merge  bool    // the decoder puts the fields into the parent
	InFile bool    // from a TYPEDEFINITION in the file

	// Bytewise marks text or bytes of any length that are written as an array of
	// one-byte records. Plain items of one id would differ in size, and a decoder that
	// applies one definition to all of them could not read them.
	Bytewise bool

	old     []Field // fields of a first version that had other names
	oldSize int
}

// FieldsFor returns the fields of a payload of size bytes, which tells the version. Fields
// beyond that size are absent, not zero.
func (s Spec) FieldsFor(size int) []Field {
	fields := s.Fields
	if s.oldSize != 0 && size == s.oldSize {
		fields = s.old
	}
	n := sort.Search(len(fields), func(i int) bool { return fields[i].End() > size })
	return fields[:n:n]
}

// Size is the size in bytes of the newest version, 0 if it varies.
func (s Spec) Size() int {
	if len(s.Sizes) == 0 {
		return 0
	}
	return s.Sizes[len(s.Sizes)-1]
}

// table is constant after initialisation.
var table = buildTable(
	genericSpecs, taskSpecs, threadSpecs, machineSpecs, imageSpecs, latencySpecs,
	exclaveSpecs, crashSpecs, exitSpecs, linuxSpecs)

func buildTable(themes ...func() []Spec) map[Type]Spec {
	m := make(map[Type]Spec)
	for _, theme := range themes {
		for _, s := range theme() {
			if _, dup := m[s.Type]; dup {
				panic("kcdata: type id described twice: " + s.Name)
			}
			m[s.Type] = s
		}
	}
	return m
}

// Lookup returns the built-in description of t; ok is false for an unknown type.
func Lookup(t Type) (s Spec, ok bool) {
	s, ok = table[t]
	return s, ok
}
