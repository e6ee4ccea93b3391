package kcdata

import (
	"fmt"
	"reflect"
	"strings"
)

// maxName is the longest name of a field, a type or a desc: 31 bytes and a NUL.
const maxName = 31

// fieldsOf derives the packed layout of v's struct from its kc tags. It panics
// on a struct that the format cannot carry: that is a fault of this package.
func fieldsOf(v any) []Field {
	t := reflect.TypeOf(v)
	fields := make([]Field, 0, t.NumField())
	off := 0
	for i := range t.NumField() {
		f, err := fieldOf(t.Field(i), off)
		if err != nil {
			panic(err)
		}
		fields = append(fields, f)
		off = f.End()
	}
	return fields
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
	if f.Elem = elemOf(t.Kind()); f.Elem == 0 {
		return Field{}, fmt.Errorf("kcdata: field %s has type %s", sf.Name, sf.Type)
	}
	if opt == "char" {
		f.Elem = ElemChar
	}
	return f, nil
}

func cutName(s string) string {
	if len(s) > maxName {
		return s[:maxName]
	}
	return s
}

func elemOf(k reflect.Kind) ElemType {
	switch k {
	case reflect.Int8:
		return ElemInt8
	case reflect.Uint8:
		return ElemUint8
	case reflect.Int16:
		return ElemInt16
	case reflect.Uint16:
		return ElemUint16
	case reflect.Int32:
		return ElemInt32
	case reflect.Uint32:
		return ElemUint32
	case reflect.Int64:
		return ElemInt64
	case reflect.Uint64:
		return ElemUint64
	}
	return 0
}

// structSpec describes a type by the Go struct of its newest version; older are
// the sizes of the versions that were prefixes of it.
func structSpec(t Type, name, key string, v any, older ...int) Spec {
	fields := fieldsOf(v)
	size := fields[len(fields)-1].End()
	return Spec{Type: t, Name: name, Key: key, Kind: KindStruct, Fields: fields, Sizes: append(older, size)}
}

// plainSpec describes a type whose payload has no fields.
func plainSpec(t Type, name, key string, k Kind) Spec {
	s := Spec{Type: t, Name: name, Key: key, Kind: k}
	if e := k.elem(); e != 0 {
		s.Sizes = []int{e.Size()}
	}
	return s
}

// bytewise describes text or bytes as arrays of one-byte records.
func bytewise(t Type, name, key string, k Kind) Spec {
	s := plainSpec(t, name, key, k)
	s.Bytewise = true
	return s
}

// merged marks a struct whose fields the decoder puts into the parent.
func merged(s Spec) Spec {
	s.Merge = true
	return s
}
