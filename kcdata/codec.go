package kcdata

import (
	"encoding/binary"
	"fmt"
	"reflect"
	"sync"
	"unsafe"
)

// plan is the packed layout of a Go type. Encoding and decoding follow it. Nothing changes a
// plan that is in plans.
type plan struct {
	fields []Field // a scalar has one, without a name
	size   int
	flat   bool // memory and packed form have the same bytes, which are copied as a whole
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
	if e := elems[t.Kind()]; e != 0 {
		return &plan{fields: []Field{{Elem: e}}, size: e.Size(), flat: littleEndian}, nil
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
		p.fields = append(p.fields, f)
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

// Unmarshal fills the struct or integer that v points to. It ignores the tail of a longer
// payload. From a shorter one it takes the whole leading fields and sets the others to zero.
// Errors: ErrTruncated for an empty payload, in a *FormatError; ErrNotFixed if v is no such
// pointer.
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
	return p.unmarshal(payload, rv)
}

func (p *plan) unmarshal(payload []byte, v reflect.Value) error {
	if len(payload) == 0 {
		return badf(0, ErrTruncated, "empty payload for %s", v.Type())
	}
	p.decode(payload, v)
	return nil
}

// littleEndian says that memory has the byte order of the wire. Constant.
var littleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// memory is the bytes of v, which must be addressable and have a flat plan. A plan has only
// integers and arrays of them, so there are no pointers among the bytes.
func (p *plan) memory(v reflect.Value) []byte {
	return unsafe.Slice((*byte)(v.Addr().UnsafePointer()), p.size)
}

func (p *plan) encode(b []byte, v reflect.Value) {
	if p.flat && v.CanAddr() {
		copy(b, p.memory(v))
		return
	}
	p.encodePacked(b, v)
}

func (p *plan) decode(b []byte, v reflect.Value) {
	if len(b) < p.size { // a field that is not wholly there becomes zero
		b = append(make([]byte, 0, p.size), b[:p.held(len(b))]...)[:p.size]
	}
	if p.flat {
		copy(p.memory(v), b)
		return
	}
	p.decodePacked(b, v)
}

// held is how many bytes of a payload of size bytes belong to whole fields of p.
func (p *plan) held(size int) (n int) {
	for i := range p.fields {
		if end := p.fields[i].End(); end <= size {
			n = end
		}
	}
	return n
}

// encodePacked and decodePacked are for types that are not flat. They cannot fail: a plan
// has only types that encoding/binary knows, and b has the size of the plan.
func (p *plan) encodePacked(b []byte, v reflect.Value) {
	if v.CanAddr() {
		v = v.Addr()
	}
	if _, err := binary.Encode(b[:p.size], binary.LittleEndian, v.Interface()); err != nil {
		panic(err)
	}
}

func (p *plan) decodePacked(b []byte, v reflect.Value) {
	if _, err := binary.Decode(b, binary.LittleEndian, v.Addr().Interface()); err != nil {
		panic(err)
	}
}

// signed reports whether the element type is a signed integer. Char is not: Go holds it in
// bytes.
func (e ElemType) signed() bool { return e != ElemChar && e%2 == 0 }

// getElem reads one element of b and extends the sign of a signed one.
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
