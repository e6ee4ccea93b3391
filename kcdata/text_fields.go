package kcdata

// linesOf gives the fields to show of a payload of size bytes: for a scalar or
// a string one without a name.
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
	v := Field{Name: "value", Offset: descName, Elem: ElemUint8, Count: size}
	switch t {
	case TypeStringDesc:
		v.Elem = ElemChar
	case TypeUint32Desc:
		v.Elem, v.Count = ElemUint32, 0
	case TypeUint64Desc:
		v.Elem, v.Count = ElemUint64, 0
	case TypeInt32Desc:
		v.Elem, v.Count = ElemInt32, 0
	case TypeInt64Desc:
		v.Elem, v.Count = ElemInt64, 0
	}
	name := []Field{{Name: "name", Elem: ElemChar, Count: descName}}
	if size == 0 {
		return name // BINDATA_DESC without data
	}
	return append(name, pieces(v)...)
}

// maxLine is how many bytes of a payload stand on one line: it is made in memory.
const maxLine = 64 << 10

// pieces cuts a field of bytes into such as fit on a line.
func pieces(f Field) []Field {
	var out []Field
	for ; f.Count > maxLine; f.Count, f.Offset = f.Count-maxLine, f.Offset+maxLine {
		p := f
		p.Count = maxLine
		out = append(out, p)
	}
	return append(out, f)
}

// definitionFields describes a definition's payload, which the walk has checked.
func definitionFields(b []byte) []Field {
	out := []Field{
		{Name: "type", Elem: ElemUint32},
		{Name: "count", Elem: ElemUint32, Offset: 4},
		{Name: "name", Elem: ElemChar, Offset: 8, Count: descName},
	}
	for i, n := 0, int(getElem(b[4:], ElemUint32)); i < n; i++ {
		at := definitionHead + i*definitionField
		out = append(out,
			Field{Name: "flags", Elem: ElemUint8, Offset: at},
			Field{Name: "element", Elem: ElemUint8, Offset: at + 1},
			Field{Name: "offset", Elem: ElemUint16, Offset: at + 2},
			Field{Name: "size", Elem: ElemUint32, Offset: at + 4},
			Field{Name: "name", Elem: ElemChar, Offset: at + 8, Count: descName})
	}
	return out
}
