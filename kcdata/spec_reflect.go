package kcdata

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// maxName is the longest name of a field, a type or a desc: 31 bytes and a NUL.
const maxName = 31

// fieldsOf derives the packed layout of v's struct from its kc tags. It panics on a struct
// that the format cannot hold, which would be a fault of this package.
func fieldsOf(v any) []Field {
	p, err := planOf(reflect.TypeOf(v))
	if err != nil {
		panic(err)
	}
	return slices.Clone(p.fields)
}

func fieldOf(sf reflect.StructField, off int) (Field, error) {
	name, opt, _ := strings.Cut(sf.Tag.Get("kc"), ",")
	if name == "" {
		return Field{}, fmt.Errorf("kcdata: field %s has no kc tag", sf.Name)
	}
	f := Field{Name: cutName(name), Offset: off}
	t := sf.Type
	if t.Kind() == reflect.Array {
		f.Count = t.Len()
		t = t.Elem()
	}
	if f.Elem = elems[t.Kind()]; f.Elem == 0 {
		return Field{}, fmt.Errorf("kcdata: field %s has type %s", sf.Name, sf.Type)
	}
	if opt == "char" {
		f.Elem = ElemChar
	}
	return f, nil
}

func cutName(s string) string { return s[:min(len(s), maxName)] }

// elems are the element types of Go's integers.
var elems = map[reflect.Kind]ElemType{
	reflect.Int8: ElemInt8, reflect.Int16: ElemInt16, reflect.Int32: ElemInt32, reflect.Int64: ElemInt64,
	reflect.Uint8: ElemUint8, reflect.Uint16: ElemUint16, reflect.Uint32: ElemUint32, reflect.Uint64: ElemUint64,
}

// structSpec describes a type by the Go struct of its newest version. older are the sizes
// in bytes of the older versions, which had only the first fields of it.
func structSpec(t Type, name, key string, v any, older ...int) Spec {
	return fieldsSpec(t, name, key, fieldsOf(v), older)
}

// declared describes a type that no code here has a struct for. c are the C declarations
// of the fields of its newest version, packed.
func declared(t Type, name, key, c string, older ...int) Spec {
	return fieldsSpec(t, name, key, fieldsIn(c), older)
}

func fieldsSpec(t Type, name, key string, fields []Field, older []int) Spec {
	size := fields[len(fields)-1].End()
	return Spec{Type: t, Name: name, Key: key, Kind: KindStruct, Fields: fields, Sizes: append(older, size)}
}

// fieldsIn reads C declarations: "uint64_t a, b; char c[16]". It panics on other text,
// which would be a fault of this package.
func fieldsIn(c string) (fields []Field) {
	off := 0
	for declaration := range strings.SplitSeq(strings.TrimRight(c, "; \t\n"), ";") {
		elem, names, _ := strings.Cut(strings.TrimSpace(declaration), " ")
		for name := range strings.SplitSeq(names, ",") {
			f := Field{Elem: ElemType(slices.Index(elemNames[:], elem)), Offset: off}
			name, count, isArray := strings.Cut(strings.TrimSpace(name), "[")
			if isArray {
				f.Count, _ = strconv.Atoi(strings.TrimSuffix(count, "]"))
			}
			if f.Name = cutName(name); f.Name == "" || f.Elem.Size() == 0 || isArray && f.Count == 0 {
				panic("kcdata: not a declaration: " + declaration)
			}
			fields, off = append(fields, f), f.End()
		}
	}
	return fields
}

// plainSpec describes a type whose payload has no fields.
func plainSpec(t Type, name, key string, k Kind) Spec {
	s := Spec{Type: t, Name: name, Key: key, Kind: k}
	if e := k.elem(); e != 0 {
		s.Sizes = []int{e.Size()}
	}
	return s
}

// bytewise describes text or bytes that are written as arrays of one-byte records.
func bytewise(t Type, name, key string, k Kind) Spec {
	s := plainSpec(t, name, key, k)
	s.Bytewise = true
	return s
}

// merged marks a struct whose fields Apple's decoder puts into the parent.
func merged(s Spec) Spec {
	s.Merge = true
	return s
}
