package kcdata

import (
	"encoding/json"
	"fmt"
	"testing"
)

// treeOf is the JSON of the buffer's own object.
func treeOf(t *testing.T, fill func(ItemWriter)) string {
	t.Helper()
	tree, err := Decode(buffer(t, MagicStackshot, fill))
	ok(t, err)
	v, found := tree.Get("kcdata_stackshot")
	if !found || len(tree.Members) != 1 {
		t.Fatalf("members %v", tree.Members)
	}
	j, err := json.Marshal(v)
	ok(t, err)
	return string(j)
}

func TestK13RulesOfTheTree(t *testing.T) {
	for _, c := range []struct {
		rule string
		fill func(ItemWriter)
		want string
	}{
		{"a repeated scalar keeps its first value", func(w ItemWriter) {
			ok(t, w.String(TypeBootArgs, "one"))
			ok(t, w.String(TypeBootArgs, "two"))
		}, `{"boot_args":"one"}`},
		{"arrays of one element type are joined", func(w ItemWriter) {
			ok(t, w.Uint64s(TypePageTables, []uint64{1, 2}))
			ok(t, w.Uint64s(TypePageTables, []uint64{3}))
			ok(t, w.Uint64s(TypePageTables, nil))
		}, `{"ts_pagetable":[1,2,3]}`},
		{"an array does not join a scalar", func(w ItemWriter) {
			ok(t, w.Struct(TypeASID, uint32(1)))
			ok(t, w.StructArray(TypeASID, []uint32{2}))
		}, `{"ts_asid":1}`},
		{"a merged struct's fields stand in the parent", func(w ItemWriter) {
			ok(t, w.Struct(TypeDuration, Duration{1, 2, 3}))
		}, `{"stackshot_duration":1,"stackshot_duration_outer":2,"stackshot_duration_prior":3}`},
		{"containers stand by id under their key, the last of an id stays", func(w ItemWriter) {
			for _, name := range []string{"a", "b"} {
				ok(t, w.BeginContainer(TypeTask, 7))
				ok(t, w.String(TypeThreadName, name))
				ok(t, w.EndContainer(7))
			}
			ok(t, w.BeginContainer(TypeTask, 0))
			ok(t, w.EndContainer(0))
		}, `{"task_snapshots":{"7":{"pth_name":"b"},"0":{}}}`},
		{"a desc cannot take the tasks' place", func(w ItemWriter) {
			ok(t, w.Uint32Desc("task_snapshots", 1))
			ok(t, w.BeginContainer(TypeTask, 1))
			ok(t, w.EndContainer(1))
			ok(t, w.BeginContainer(TypeTask, 2))
			ok(t, w.EndContainer(2))
		}, `{"task_snapshots":{"1":{},"2":{}}}`},
		{"every desc has its value", func(w ItemWriter) {
			ok(t, w.Bytes(TypeInt32Desc, descOf("s32", int32(-1))))
			ok(t, w.Bytes(TypeInt64Desc, descOf("s64", int64(-1<<63))))
			ok(t, w.Bytes(TypeStringDesc, descOf("s", "v")))
			ok(t, w.Bytes(TypeBytesDesc, descOf("b", []byte{1, 255})))
		}, `{"s32":-1,"s64":-9223372036854775808,"s":"v","b":[1,255]}`},
		{"version 1 of a struct has its own names", func(w ItemWriter) {
			ok(t, w.Bytes(TypeLatencyInfo, make([]byte, 32)))
		}, `{"stackshot_latency_collection":{"latency_version":0,"setup_latency":0,"total_task_iteration_latency":0,"total_terminated_task_iteration":0}}`},
		{"an unknown type is a list of bytes with its padding", func(w ItemWriter) {
			ok(t, w.Bytes(0x7777, []byte{1}))
		}, `{"0x7777":[1,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]}`},
		{"a scalar that is cut is a list of bytes", func(w ItemWriter) {
			ok(t, w.Bytes(TypeKernPageSize, []byte{1, 2}))
		}, `{"kernel_page_size":[1,2]}`},
	} {
		if got := treeOf(t, c.fill); got != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.rule, got, c.want)
		}
	}
}

// An object with many members finds them as one with few does.
func TestObjectWithManyMembers(t *testing.T) {
	var o Object
	const n = 3 * indexFrom
	for i := range n {
		o.add(fmt.Sprint(i), i)
		o.add(fmt.Sprint(i), -1)
	}
	o.set("5", "new")
	for i := range n {
		want := any(i)
		if i == 5 {
			want = "new"
		}
		if v, found := o.Get(fmt.Sprint(i)); !found || v != want {
			t.Errorf("%d: %v %v", i, v, found)
		}
	}
	if _, found := o.Get("x"); found || len(o.Members) != n {
		t.Errorf("%d members", len(o.Members))
	}
}

// The offset of an error inside a nested buffer counts from the file's start.
func TestK5ErrorsInNestedBuffersSayWhere(t *testing.T) {
	inner := append(rawItem(MagicCrashinfo, 0, 0), rawItem(TypeContainerEnd, 0, 5)...)
	_, err := Decode(around(rawItem(TypeTimebase, 0, 0x80), rawItem(TypeNested, uint32(len(inner)), 0, inner...)))
	wantFormat(t, err, ErrBadContainer)
	if fe, isFormat := err.(*FormatError); isFormat && fe.Offset != 64 {
		t.Errorf("offset %d, want 64", fe.Offset)
	}
}
