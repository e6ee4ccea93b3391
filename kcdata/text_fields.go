package kcdata

import "slices"

// linesOf returns the fields to show for a payload of size bytes. For a scalar or a string
// that is one field without a name.
func linesOf(s Spec, size int) []Field {
	switch e := s.Kind.elem(); {
	case s.Kind == KindStruct:
		return s.FieldsFor(size)
	case s.Kind == KindString && size > 0:
		return pieces(Field{Elem: ElemChar, Count: size})
	case e != 0 && size >= e.Size():
		return []Field{{Elem: e}}
	}
	return nil
}

func descFields(t Type, size int) []Field {
	v := Field{Name: "value", Offset: descName, Elem: descElems[t]}
	if t == TypeStringDesc || t == TypeBytesDesc {
		v.Count = size
	}
	name := []Field{{Name: "name", Elem: ElemChar, Count: descName}}
	if size == 0 {
		return name // BINDATA_DESC without data
	}
	return append(name, pieces(v)...)
}

// maxLine is how many bytes of a payload stand on one line. A line is made in memory.
const maxLine = 64 << 10

// pieces cuts a field of bytes into fields that each fit on one line.
func pieces(f Field) []Field {
	var out []Field
	for ; f.Count > maxLine; f.Count, f.Offset = f.Count-maxLine, f.Offset+maxLine {
		p := f
		p.Count = maxLine
		out = append(out, p)
	}
	return append(out, f)
}

// The fields at the begin of a definition's payload, and those for each field it defines.
var (
	definitionBegin = fieldsIn("uint32_t type, count; char name[32]")
	definitionEach  = fieldsIn("uint8_t flags, element; uint16_t offset; uint32_t size; char name[32]")
)

// definitionFields describes a definition's payload, which the walk has checked.
func definitionFields(b []byte) []Field {
	out := slices.Clone(definitionBegin)
	for i := range int(getElem(b[4:], ElemUint32)) {
		for _, f := range definitionEach {
			f.Offset += definitionHead + i*definitionField
			out = append(out, f)
		}
	}
	return out
}
