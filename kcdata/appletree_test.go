package kcdata

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
)

// Decode is the proof of K13 that Reader and the spec table are enough to build
// Apple's decoder on. It gives the tree that that prints: one member, named after
// the magic, with the buffer's items by key. Containers stand under the key of
// their type and there under their id. A repeated key keeps its first value, but
// arrays are joined. Unlike Apple's, it gives every desc type its value,
// shows version 2 of LATENCY_INFO as it is, and an array of one-byte records as
// one text or list of bytes.
func Decode(plain []byte) (*Object, error) {
	root := new(Object)
	if err := decodeBuffer(root, plain, 0); err != nil {
		return nil, err
	}
	return root, nil
}

// decoder builds one buffer's tree.
type decoder struct {
	r      *Reader
	nested int
	open   []*frame // the buffer and the open containers
}

// frame is an object under construction. Groups have a name space of their own,
// so that a desc cannot take the place of all tasks.
type frame struct {
	obj    *Object
	groups map[Type]*Object
}

func decodeBuffer(into *Object, plain []byte, nested int) error {
	if nested > MaxNested {
		return badf(0, ErrTooDeep, "more than %d nested buffers", MaxNested)
	}
	r, err := NewReader(plain)
	if err != nil {
		return err
	}
	d := decoder{r: r, nested: nested, open: []*frame{{obj: new(Object)}}}
	for it, err := range r.Items() {
		if err != nil {
			return err
		}
		if err := d.item(it); err != nil {
			return err
		}
	}
	into.add(d.spec(r.magic).Key, d.open[0].obj)
	return nil
}

// spec describes t, an unknown one by its number.
func (d *decoder) spec(t Type) Spec {
	if s, ok := d.r.Spec(t); ok {
		return s
	}
	return Spec{Type: t, Key: fmt.Sprintf("%#x", uint32(t)), Kind: KindBytes}
}

func (d *decoder) item(it Item) error {
	top := d.open[len(d.open)-1]
	switch it.Type {
	case TypeContainerBegin:
		d.open = append(d.open, top.child(d.spec(it.ContainerType()), it.ContainerID()))
	case TypeContainerEnd:
		d.open = d.open[:len(d.open)-1]
	case TypeArray:
		t, _, _ := it.Elem()
		top.obj.add(d.spec(t).Key, d.array(it))
	case TypeDefinition:
		top.obj.add(definitionValue(it))
	case TypeNested:
		return d.buffer(top.obj, it)
	default:
		d.scalar(top.obj, it)
	}
	return nil
}

// child is the object of a container; one of the same type and id that came
// before is replaced.
func (f *frame) child(s Spec, id uint64) *frame {
	if f.groups == nil {
		f.groups = make(map[Type]*Object)
	}
	group := f.groups[s.Type]
	if group == nil {
		group = new(Object)
		f.groups[s.Type] = group
		f.obj.set(s.Key, group)
	}
	c := &frame{obj: new(Object)}
	group.set(strconv.FormatUint(id, 10), c.obj)
	return c
}

func (d *decoder) array(it Item) []any {
	t, size, count := it.Elem()
	s := d.spec(t)
	if isText, ok := s.byteRecord(size); ok {
		if isText {
			return []any{string(bytes.TrimSuffix(it.Data, []byte{0}))}
		}
		return []any{ByteList(it.Data)}
	}
	fields := s.FieldsFor(size)
	out := make([]any, count)
	for i := range out {
		out[i] = value(s, fields, it.Data[i*size:(i+1)*size])
	}
	return out
}

func (d *decoder) buffer(into *Object, it Item) error {
	err := decodeBuffer(into, it.Data, d.nested+1)
	var fe *FormatError
	if errors.As(err, &fe) {
		fe.Offset += it.Offset + headerSize
	}
	return err
}

func (d *decoder) scalar(into *Object, it Item) {
	if name, v, ok := it.Desc(); ok {
		into.add(name, descValue(v))
		return
	}
	s, known := d.r.Spec(it.Type)
	if !known {
		// Nothing says that it has padding.
		into.add(d.spec(it.Type).Key, ByteList(it.raw))
		return
	}
	v := value(s, s.FieldsFor(len(it.Data)), it.Data)
	obj, isStruct := v.(*Object)
	if !isStruct || !s.Merge {
		into.add(s.Key, v)
		return
	}
	for _, m := range obj.Members {
		into.add(m.Key, m.Value)
	}
}

func descValue(v any) any {
	switch v := v.(type) {
	case uint32:
		return uint64(v)
	case int32:
		return int64(v)
	case []byte:
		return ByteList(v)
	}
	return v
}

// value is the payload b of type s; fields are those of its size.
func value(s Spec, fields []Field, b []byte) any {
	switch {
	case s.Kind == KindStruct:
		o := &Object{Members: make([]Member, 0, len(fields))}
		for _, f := range fields {
			o.set(f.Name, fieldValue(f, b))
		}
		return o
	case s.Kind == KindString:
		return cString(b)
	case s.Kind.elem() != 0 && len(b) >= s.Kind.elem().Size():
		return number(s.Kind.elem(), b)
	}
	return ByteList(b)
}

func fieldValue(f Field, b []byte) any {
	b = b[f.Offset:f.End()]
	switch {
	case f.Elem == ElemChar:
		return cString(b)
	case f.Count == 0:
		return number(f.Elem, b)
	case f.Elem == ElemUint8:
		return ByteList(b)
	}
	out := make([]any, f.Count)
	for i := range out {
		out[i] = number(f.Elem, b[i*f.Elem.Size():])
	}
	return out
}

func number(e ElemType, b []byte) any {
	if e.signed() {
		return int64(getElem(b, e))
	}
	return getElem(b, e)
}

// definitionValue shows a definition, for the reader has learnt it already.
func definitionValue(it Item) (key string, v *Object) {
	s, err := parseDefinition(it.Data)
	if err != nil {
		return it.Type.String(), new(Object) // not reached: the walk has refused it
	}
	fields := make([]any, len(s.Fields))
	for i, f := range s.Fields {
		fields[i] = f.String()
	}
	return "typedef[" + s.Name + "]", &Object{Members: []Member{
		{"name", s.Name}, {"typeID", uint64(s.Type)}, {"numOfFields", uint64(len(fields))}, {"fields", fields},
	}}
}

// String describes the field as a C declaration behind its offset and size.
func (f Field) String() string {
	if f.Count > 0 {
		return fmt.Sprintf("[%d,%d] %v  %s[%d];", f.Offset, f.Size(), f.Elem, f.Name, f.Count)
	}
	return fmt.Sprintf("[%d,%d] %v  %s;", f.Offset, f.Size(), f.Elem, f.Name)
}
