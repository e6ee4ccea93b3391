package show

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"reflect"
)

// Object is a JSON object: its members in order, each a key (a string) and a value. A member
// whose value is nil is left out: a value that was not read is absent, not zero.
type Object [][2]any

// Members yields the members that are not left out, in order.
func (o Object) Members() iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		for _, m := range o {
			if !isNil(m[1]) && !yield(m[0].(string), m[1]) {
				return
			}
		}
	}
}

// MarshalJSON writes the members as a json.Encoder with SetEscapeHTML(false) does.
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

// Known is a pointer to a value; nil if it is zero, which means that it was not read.
func Known[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

// Present is a pointer to v if the presence bits say that v was read; else nil.
func Present[T any](bits, bit uint64, v T) *T {
	if bits&bit == 0 {
		return nil
	}
	return &v
}

// Optional is the object of a record; nil without a record.
func Optional[R any](record *R, object func(r *R) Object) Object {
	if record == nil {
		return nil
	}
	return object(record)
}

// List has one object for each record; it is never nil.
func List[R any](records []R, object func(r *R) Object) []Object {
	out := make([]Object, len(records))
	for i := range records {
		out[i] = object(&records[i])
	}
	return out
}

// Hex is an address or a 64-bit id. JSON has it as text, because readers of JSON
// may keep numbers as doubles, which lose the low bits.
type Hex uint64

// MarshalText writes "0x1f".
func (h Hex) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%#x", uint64(h)), nil }

// Number is the pid or tid that a container id stands for; nil for the idle threads of
// CPUs, which have neither.
func Number(id uint64) *uint32 {
	if id >= 1<<32 {
		return nil
	}
	n := uint32(id)
	return &n
}
