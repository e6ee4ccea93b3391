package kcdata

import (
	"reflect"
	"strings"
	"sync"
)

// itemFields are those fields of a Snapshot, Task or Thread that an item of one type fills,
// by that type. Nothing changes it after newItemFields.
type itemFields map[Type]itemField

type itemField struct {
	index int          // of the field
	has   int          // index of the bool that says whether it is in the file; records only
	kind  reflect.Kind // String: text; Struct, Pointer: a record; Slice: an array of records
	plan  *plan        // of the record
}

// models are made for the first file, from the tags of the structs: `item:"NAME"` is the
// name of a type in the spec table, or several names divided by commas. snapshot_items.go
// has the items that need more than that.
var models = sync.OnceValue(func() *modelFields {
	types := make(map[string]Type, len(table))
	for t, s := range table {
		types[s.Name] = t
	}
	of := func(t reflect.Type) itemFields { return newItemFields(t, types) }
	return &modelFields{of(reflect.TypeFor[Snapshot]()), of(reflect.TypeFor[Task]()), of(reflect.TypeFor[Thread]())}
})

type modelFields struct{ snapshot, task, thread itemFields }

func newItemFields(t reflect.Type, types map[string]Type) itemFields {
	m := itemFields{}
	for i := range t.NumField() {
		f := t.Field(i)
		names, tagged := f.Tag.Lookup("item")
		if !tagged {
			continue
		}
		to := itemField{index: i, kind: f.Type.Kind()}
		switch to.kind {
		case reflect.Struct: // its value does not tell whether the file holds it
			has, _ := t.FieldByName("Has" + f.Name)
			to.has = has.Index[0]
			to.plan, _ = planOf(f.Type)
		case reflect.Pointer:
			to.plan, _ = planOf(f.Type.Elem())
		}
		for name := range strings.SplitSeq(names, ",") {
			of, known := types[name]
			if !known {
				panic("kcdata: there is no type " + name) // a fault of this package
			}
			m[of] = to
		}
	}
	return m
}

// kind is the item's type, or for an array the type of its elements. An array of one-byte
// records is text or bytes and does not count as an array.
func (it Item) kind() (of Type, isArray bool) {
	if of = it.Of(); of != TypeArray {
		return of, false
	}
	return arrayElem(it), true
}

// fill decodes an item of that kind into the field of v that is for it. It is false if there
// is no such field.
func (p *snapshotParser) fill(v reflect.Value, m itemFields, it Item, of Type, isArray bool) bool {
	to, ok := m[of]
	if !ok || isArray != (to.kind == reflect.Slice) {
		return false
	}
	switch f := v.Field(to.index); to.kind {
	case reflect.String:
		f.SetString(p.text(it, maxText))
	case reflect.Struct:
		v.Field(to.has).SetBool(p.record(it, to.plan, f))
	case reflect.Pointer: // stays nil if the record cannot be decoded
		record := f.Type().Elem()
		if n := reflect.New(record); p.take(int64(record.Size()), "item %#x", uint32(it.Type)) && p.record(it, to.plan, n.Elem()) {
			f.Set(n)
		}
	case reflect.Slice:
		p.array(it, f.Addr().Interface())
	}
	return true
}

// record decodes a struct item into v and reports whether it could.
func (p *snapshotParser) record(it Item, by *plan, v reflect.Value) bool {
	if err := by.unmarshal(it.Data, v); err != nil {
		p.problem("item %#x in %s: %v", uint32(it.Type), p.where(), err)
		return false
	}
	return true
}
