package kcdata

import (
	"encoding/binary"
	"fmt"
	"reflect"
	"sync"
	"unsafe"
)

// plan is the packed layout of a Go type: what encoding and decoding follow.
// A plan is constant once it is in plans.
type plan struct {
	fields []planField
	size   int
	flat   bool // in memory the same bytes as packed: copied as a whole
}

type planField struct {
	Field
	index int // of the struct field; -1: the value itself is the scalar
}

var plans sync.Map // reflect.Type → *plan

func planOf(t reflect.Type) (*plan, error) {
	if p, ok := plans.Load(t); ok {
		return p.(*plan), nil
	}
	p, err := newPlan(t)
	if err != nil {
		return nil, err
	}
	plans.Store(t, p)
	return p, nil
}

func newPlan(t reflect.Type) (*plan, error) {
	if e := elemOf(t.Kind()); e != 0 {
		return &plan{fields: []planField{{Field: Field{Elem: e}, index: -1}}, size: e.Size(), flat: littleEndian}, nil
	}
	if t.Kind() != reflect.Struct || t.NumField() == 0 {
		return nil, fmt.Errorf("%w: %s", ErrNotFixed, t)
	}
	p := &plan{flat: littleEndian}
	for i := range t.NumField() {
		f, err := fieldOf(t.Field(i), p.size)
		if err != nil {
			return nil, fmt.Errorf("%w: %v", ErrNotFixed, err)
		}
		p.fields = append(p.fields, planField{f, i})
		p.flat = p.flat && t.Field(i).Offset == uintptr(p.size)
		p.size = f.End()
	}
	p.flat = p.flat && t.Size() == uintptr(p.size)
	return p, nil
}

// SizeOf is the packed size in bytes of v, a struct with kc tags, an integer,
// or a pointer to one; 0 for anything else.
func SizeOf(v any) int {
	_, p, err := resolve(v)
	if err != nil {
		return 0
	}
	return p.size
}

func resolve(v any) (reflect.Value, *plan, error) {
	rv := reflect.ValueOf(v)
	if rv.Kind() == reflect.Pointer && !rv.IsNil() {
		rv = rv.Elem()
	}
	if !rv.IsValid() {
		return rv, nil, ErrNotFixed
	}
	p, err := planOf(rv.Type())
	return rv, p, err
}

// Marshal appends the packed form of v, a struct with kc tags, an integer, or a
// pointer to one. It panics on anything else, which is a fault of the caller.
func Marshal(dst []byte, v any) []byte {
	rv, p, err := resolve(v)
	if err != nil {
		panic(err)
	}
	n := len(dst)
	if cap(dst)-n >= p.size {
		dst = dst[:n+p.size]
	} else {
		dst = append(dst, make([]byte, p.size)...)
	}
	p.encode(dst[n:], rv)
	return dst
}

// Unmarshal fills the struct or integer that v points to. A longer payload is
// accepted, its tail ignored; of a shorter one only whole leading fields are
// taken and the rest is set to zero. An empty payload is ErrTruncated.
func Unmarshal(payload []byte, v any) error {
	rv := reflect.ValueOf(v)
	if rv.Kind() != reflect.Pointer || rv.IsNil() {
		return fmt.Errorf("%w: %T is not a pointer", ErrNotFixed, v)
	}
	rv = rv.Elem()
	p, err := planOf(rv.Type())
	if err != nil {
		return err
	}
	if len(payload) == 0 {
		return badf(0, ErrTruncated, "empty payload for %s", rv.Type())
	}
	rv.SetZero()
	p.decode(payload, rv)
	return nil
}

// littleEndian is constant: memory has the byte order of the wire.
var littleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// memory is the bytes of v, which must be addressable and of a flat plan. Only
// integers and arrays of them get into a plan, so there are no pointers in it.
func (p *plan) memory(v reflect.Value) []byte {
	return unsafe.Slice((*byte)(v.Addr().UnsafePointer()), p.size)
}

func (p *plan) encode(b []byte, v reflect.Value) {
	if p.flat && v.CanAddr() {
		copy(b, p.memory(v))
		return
	}
	p.encodeFields(b, v)
}

func (p *plan) decode(b []byte, v reflect.Value) {
	if p.flat && len(b) >= p.size {
		copy(p.memory(v), b)
		return
	}
	p.decodeFields(b, v)
}

func (p *plan) encodeFields(b []byte, v reflect.Value) {
	for i := range p.fields {
		f := &p.fields[i]
		fv := v
		if f.index >= 0 {
			fv = v.Field(f.index)
		}
		if f.Count == 0 {
			putElem(b[f.Offset:], f.Elem, elemBits(fv, f.Elem))
			continue
		}
		size := f.Elem.Size()
		for j := range f.Count {
			putElem(b[f.Offset+j*size:], f.Elem, elemBits(fv.Index(j), f.Elem))
		}
	}
}

func (p *plan) decodeFields(b []byte, v reflect.Value) {
	for i := range p.fields {
		f := &p.fields[i]
		if f.End() > len(b) {
			return
		}
		fv := v
		if f.index >= 0 {
			fv = v.Field(f.index)
		}
		if f.Count == 0 {
			setElem(fv, f.Elem, getElem(b[f.Offset:], f.Elem))
			continue
		}
		size := f.Elem.Size()
		for j := range f.Count {
			setElem(fv.Index(j), f.Elem, getElem(b[f.Offset+j*size:], f.Elem))
		}
	}
}

// signed reports whether the element type sign-extends. Char does not: in Go
// it is held in bytes.
func (e ElemType) signed() bool { return e != ElemChar && e%2 == 0 }

func elemBits(v reflect.Value, e ElemType) uint64 {
	if e.signed() {
		return uint64(v.Int())
	}
	return v.Uint()
}

func setElem(v reflect.Value, e ElemType, bits uint64) {
	if e.signed() {
		v.SetInt(int64(bits))
		return
	}
	v.SetUint(bits)
}

func putElem(b []byte, e ElemType, v uint64) {
	switch e.Size() {
	case 1:
		b[0] = byte(v)
	case 2:
		binary.LittleEndian.PutUint16(b, uint16(v))
	case 4:
		binary.LittleEndian.PutUint32(b, uint32(v))
	case 8:
		binary.LittleEndian.PutUint64(b, v)
	}
}

// getElem reads one element, sign-extended where its type is signed.
func getElem(b []byte, e ElemType) uint64 {
	switch e {
	case ElemChar, ElemUint8:
		return uint64(b[0])
	case ElemInt8:
		return uint64(int8(b[0]))
	case ElemInt16:
		return uint64(int16(binary.LittleEndian.Uint16(b)))
	case ElemUint16:
		return uint64(binary.LittleEndian.Uint16(b))
	case ElemInt32:
		return uint64(int32(binary.LittleEndian.Uint32(b)))
	case ElemUint32:
		return uint64(binary.LittleEndian.Uint32(b))
	}
	return binary.LittleEndian.Uint64(b)
}
