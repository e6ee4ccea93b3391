package kcdata

import (
	"encoding/binary"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// items implements ItemWriter over a space.
type items struct{ space space }

// item reserves an item, writes its header and zeroes its padding. It returns the n bytes of
// payload, for the caller to fill.
func (w *items) item(t Type, n int, flags uint64) ([]byte, error) {
	pad := padOf(n)
	if uint64(n+pad) > 0xffffffff {
		return nil, ErrNoSpace
	}
	b, err := w.space.reserve(headerSize + n + pad)
	if err != nil {
		return nil, err
	}
	binary.LittleEndian.PutUint32(b, uint32(t))
	binary.LittleEndian.PutUint32(b[4:], uint32(n+pad))
	binary.LittleEndian.PutUint64(b[8:], flags)
	b = b[headerSize:]
	clear(b[n:])
	return b[:n], nil
}

// plain reserves an item whose flags record its padding.
func (w *items) plain(t Type, n int) ([]byte, error) {
	return w.item(t, n, uint64(hasPadding|padOf(n)))
}

func (w *items) Begin(magic Type) error {
	if !magic.IsMagic() {
		return ErrReserved
	}
	_, err := w.plain(magic, 0)
	return err
}

func (w *items) End() error {
	_, err := w.item(BufferEnd, 0, 0)
	return err
}

func (w *items) Struct(t Type, v any) error {
	rv, p, err := resolve(v)
	if err != nil {
		return err
	}
	if err := checkStruct(t, p.size); err != nil {
		return err
	}
	b, err := w.plain(t, p.size)
	if err != nil {
		return err
	}
	p.encode(b, rv)
	return nil
}

// checkStruct compares a size with the spec table. A struct with a size that no known version
// has is a fault of the writer, not growth.
func checkStruct(t Type, size int) error {
	if t.isStructural() || t == TypeDefinition {
		return ErrReserved
	}
	s, ok := Lookup(t)
	if !ok || len(s.Sizes) == 0 {
		return nil
	}
	if !slices.Contains(s.Sizes, size) {
		return ErrSizeMismatch
	}
	return nil
}

func (w *items) Bytes(t Type, b []byte) error {
	if t.isStructural() || t == TypeDefinition {
		return ErrReserved
	}
	dst, err := w.blob(t, len(b))
	copy(dst, b)
	return err
}

// blob reserves n bytes of type t, as an array if the spec says Bytewise.
func (w *items) blob(t Type, n int) ([]byte, error) {
	if s, _ := Lookup(t); s.Bytewise {
		return w.array(t, 1, n)
	}
	return w.plain(t, n)
}

func (w *items) String(t Type, s string) error {
	if t.isStructural() || t == TypeDefinition {
		return ErrReserved
	}
	if strings.IndexByte(s, 0) >= 0 {
		return ErrBadName
	}
	dst, err := w.blob(t, len(s)+1)
	if err != nil {
		return err
	}
	dst[copy(dst, s)] = 0
	return nil
}

// array reserves an array of count elements of size bytes.
func (w *items) array(elem Type, size, count int) ([]byte, error) {
	if size < 0 || count < 0 || uint64(count) > 0xffffffff || (count > 0 && size == 0) {
		return nil, ErrSizeMismatch
	}
	if count > 0 && size > 0xffffffff/count {
		return nil, ErrNoSpace
	}
	n := size * count
	return w.item(TypeArrayPad0|Type(padOf(n)), n, uint64(elem)<<32|uint64(count))
}

func (w *items) Array(elem Type, elemSize, count int, b []byte) error {
	if len(b) != elemSize*count {
		return ErrSizeMismatch
	}
	dst, err := w.array(elem, elemSize, count)
	copy(dst, b)
	return err
}

func (w *items) Uint64s(elem Type, v []uint64) error {
	dst, err := w.array(elem, 8, len(v))
	if err != nil {
		return err
	}
	for i, x := range v {
		binary.LittleEndian.PutUint64(dst[8*i:], x)
	}
	return nil
}

func (w *items) StructArray(elem Type, slice any) error {
	rv := reflect.ValueOf(slice)
	if rv.Kind() != reflect.Slice {
		return fmt.Errorf("%w: %T is not a slice", ErrNotFixed, slice)
	}
	p, err := planOf(rv.Type().Elem())
	if err != nil {
		return err
	}
	if err := checkStruct(elem, p.size); err != nil {
		return err
	}
	dst, err := w.array(elem, p.size, rv.Len())
	if err != nil {
		return err
	}
	for i := range rv.Len() {
		p.encode(dst[i*p.size:(i+1)*p.size], rv.Index(i))
	}
	return nil
}

func (w *items) BeginContainer(t Type, id uint64) error {
	b, err := w.item(TypeContainerBegin, alignment, id)
	if err != nil {
		return err
	}
	clear(b)
	binary.LittleEndian.PutUint32(b, uint32(t))
	return nil
}

func (w *items) EndContainer(id uint64) error {
	_, err := w.item(TypeContainerEnd, 0, id)
	return err
}

func (w *items) Define(t Type) error {
	s, ok := Lookup(t)
	if ok {
		s, ok = s.definition()
	}
	if !ok {
		return ErrNotDefinable
	}
	n := s.definitionSize()
	// Its flags hold the padding and nothing else.
	b, err := w.item(TypeDefinition, n, uint64(padOf(n)))
	if err != nil {
		return err
	}
	s.putDefinition(b)
	return nil
}
