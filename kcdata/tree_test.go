package kcdata

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// Object is a decoded struct, container or buffer: members in file order.
type Object struct {
	Members []Member
	index   map[string]int // built when there are many
}

// Member is one named value: *Object, []any, ByteList, string, uint64 or int64.
type Member struct {
	Key   string
	Value any
}

// ByteList is opaque bytes; as JSON it is a list of numbers.
type ByteList []byte

// indexFrom is the size from which an object is searched by map.
const indexFrom = 32

func (o *Object) find(key string) int {
	if o.index != nil {
		if i, ok := o.index[key]; ok {
			return i
		}
		return -1
	}
	for i := range o.Members {
		if o.Members[i].Key == key {
			return i
		}
	}
	return -1
}

// Get gives the value under key.
func (o *Object) Get(key string) (any, bool) {
	if i := o.find(key); i >= 0 {
		return o.Members[i].Value, true
	}
	return nil, false
}

// set puts value under key, in the place of an earlier one.
func (o *Object) set(key string, value any) {
	if i := o.find(key); i >= 0 {
		o.Members[i].Value = value
		return
	}
	o.Members = append(o.Members, Member{key, value})
	n := len(o.Members)
	switch {
	case o.index != nil:
		o.index[key] = n - 1
	case n == indexFrom:
		o.index = make(map[string]int, 2*n)
		for i, m := range o.Members {
			o.index[m.Key] = i
		}
	}
}

// add follows Apple's decoder: of two values the first stays, of two arrays the
// second is appended.
func (o *Object) add(key string, value any) {
	i := o.find(key)
	if i < 0 {
		o.set(key, value)
		return
	}
	have, isArray := o.Members[i].Value.([]any)
	more, both := value.([]any)
	if isArray && both {
		o.Members[i].Value = append(have, more...)
	}
}

// MarshalJSON keeps the order of the members.
func (o *Object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o.Members {
		if i > 0 {
			b.WriteByte(',')
		}
		if err := appendMember(&b, m); err != nil {
			return nil, err
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

func appendMember(b *bytes.Buffer, m Member) error {
	key, err := json.Marshal(m.Key)
	if err != nil {
		return err
	}
	value, err := json.Marshal(m.Value)
	if err != nil {
		return err
	}
	b.Write(key)
	b.WriteByte(':')
	b.Write(value)
	return nil
}

// MarshalJSON gives a list of numbers.
func (l ByteList) MarshalJSON() ([]byte, error) {
	out := make([]byte, 0, 2+4*len(l))
	out = append(out, '[')
	for i, x := range l {
		if i > 0 {
			out = append(out, ',')
		}
		out = strconv.AppendUint(out, uint64(x), 10)
	}
	return append(out, ']'), nil
}
