package show

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"reflect"
)

// Object is a JSON object: its members in order, a key and a value each. A member whose
// value is nil is left out: what was not read is absent, never zero.
type Object [][2]any

// Members are those that are not left out, in order.
func (o Object) Members() iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		for _, m := range o {
			if !isNil(m[1]) && !yield(m[0].(string), m[1]) {
				return
			}
		}
	}
}

// MarshalJSON writes the members as a json.Encoder does that leaves HTML alone.
func (o Object) MarshalJSON() ([]byte, error) {
	b := bytes.NewBufferString("{")
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	for key, value := range o.Members() {
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		fmt.Fprintf(b, "%q:", key)
		if err := enc.Encode(value); err != nil {
			return nil, err
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

func isNil(value any) bool {
	switch v := reflect.ValueOf(value); v.Kind() {
	case reflect.Invalid:
		return true
	case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Func:
		return v.IsNil()
	}
	return false
}

// Known is a pointer to a value of which zero means "not read".
func Known[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

// Present is a pointer to v where the presence bits say that it was read.
func Present[T any](bits, bit uint64, v T) *T {
	if bits&bit == 0 {
		return nil
	}
	return &v
}

// Optional is the object of a record; nil without one.
func Optional[R any](record *R, object func(r *R) Object) Object {
	if record == nil {
		return nil
	}
	return object(record)
}

// List is one object for each record, never nil.
func List[R any](records []R, object func(r *R) Object) []Object {
	out := make([]Object, len(records))
	for i := range records {
		out[i] = object(&records[i])
	}
	return out
}

// Hex is an address or a 64-bit id as JSON has it: text, because readers there
// may keep numbers as doubles, which lose the low bits.
type Hex uint64

// MarshalText writes "0x1f".
func (h Hex) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%#x", uint64(h)), nil }

// Number is a container id as the pid or tid it is; nil for the idle threads of
// CPUs, which have none.
func Number(id uint64) *uint32 {
	if id >= 1<<32 {
		return nil
	}
	n := uint32(id)
	return &n
}
