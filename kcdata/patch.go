package kcdata

import (
	"bytes"
	"fmt"
	"reflect"
	"unsafe"
)

// Patch calls change with the struct (or integer) at p, and change changes it where it lies.
// For an array it does so with each element in turn. T must be the struct of the item's type
// (see Spec); its kc tags say where the fields are. A record of an older version may be
// shorter: the fields that it lacks are 0, and change must not set them. Errors:
// ErrWrongPosition, ErrNotFixed; ErrReserved or ErrSizeMismatch if T is not the struct of
// the item's type; ErrSizeMismatch if change sets a field that the record lacks.
func Patch[T any](p Position, change func(*T)) error {
	if p.IsZero() {
		return ErrWrongPosition
	}
	l, err := planOf(reflect.TypeFor[T]())
	if err != nil {
		return err
	}
	it := p.Item()
	t, size, count := it.Elem()
	if it.Type != TypeArray {
		t, size, count = it.Type, len(it.Data), 1
	}
	if err := checkStruct(t, l.size); err != nil {
		return fmt.Errorf("%w: %v is no %v", err, reflect.TypeFor[T](), t)
	}
	for i := range count {
		if err := patch(l, it.Data[i*size:(i+1)*size], change); err != nil {
			return fmt.Errorf("%w: %v at byte %d", err, t, p.off)
		}
	}
	return nil
}

// patch calls change with one record in place or, if its form in memory differs from the
// packed one, with a copy.
func patch[T any](l *plan, b []byte, change func(*T)) error {
	at := unsafe.Pointer(unsafe.SliceData(b))
	if l.flat && len(b) >= l.size && uintptr(at)%unsafe.Alignof(*new(T)) == 0 {
		change((*T)(at)) // its fields are integers, and its size is l.size: see plan
		return nil
	}
	v := reflect.New(reflect.TypeFor[T]())
	l.decode(b, v.Elem())
	change(v.Interface().(*T))
	full := make([]byte, l.size)
	l.encode(full, v.Elem())
	held := l.held(len(b))
	if len(bytes.Trim(full[held:], "\x00")) > 0 {
		return ErrSizeMismatch
	}
	copy(b, full[:held])
	return nil
}

// Record is the struct (or integer) that an item holds, decoded as by Unmarshal. It does not
// allocate if the payload has T's size or more.
func Record[T any](it Item) (v T, err error) {
	if l, err := planOf(reflect.TypeFor[T]()); err == nil && l.flat && len(it.Data) >= l.size {
		copy(unsafe.Slice((*byte)(unsafe.Pointer(&v)), l.size), it.Data)
		return v, nil
	}
	slow := new(T)
	err = Unmarshal(it.Data, slow)
	return *slow, err
}
