package kcdata

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
)

// What is written is read: types, payloads, depths, and zeros behind them.
func TestK1WriterReaderRoundTrip(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		calls := randomCalls(rng, 60)
		dirty := bytes.Repeat([]byte{0xA5}, 1<<16)
		w := NewWriter(dirty)
		ok(t, w.Begin(MagicStackshot))
		for _, c := range calls {
			if err := c.do(w); err != nil {
				t.Fatalf("seed %d: %s: %v", seed, c.name, err)
			}
		}
		ok(t, w.End())
		got, err := readAll(w.Written())
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if len(got) != len(calls) {
			t.Fatalf("seed %d: %d items of %d calls", seed, len(got), len(calls))
		}
		for i, it := range got {
			checkRead(t, calls[i], it)
		}
	}
}

func checkRead(t *testing.T, c call, it Item) {
	t.Helper()
	if it.Of() != c.typ || (c.data != nil && !bytes.Equal(it.Data, c.data)) {
		t.Errorf("%s: read as %v % x, want %v % x", c.name, it.Type, it.Data, c.typ, c.data)
	}
	if it.Offset%alignment != 0 || len(it.raw)%alignment != 0 {
		t.Errorf("%s: at %d with %d bytes", c.name, it.Offset, len(it.raw))
	}
	if it.Type != TypeContainerBegin && !allZero(it.raw[len(it.Data):]) {
		t.Errorf("%s: padding % x", c.name, it.raw[len(it.Data):])
	}
}

// Every call on every room that is too small: refused, and nothing changed.
func TestK2AWholeItemOrNothing(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	for range 200 {
		c := randomCall(rng)
		full := NewWriter(make([]byte, 8192))
		ok(t, c.do(full))
		for room := range full.Len() {
			before := bytes.Repeat([]byte{0x5A}, room)
			w := NewWriter(before)
			if err := c.do(w); !errors.Is(err, ErrNoSpace) {
				t.Fatalf("%s into %d of %d bytes: %v", c.name, room, full.Len(), err)
			}
			if w.Len() != 0 || !bytes.Equal(before, bytes.Repeat([]byte{0x5A}, room)) {
				t.Fatalf("%s into %d bytes left a trace", c.name, room)
			}
		}
		exact := NewWriter(make([]byte, full.Len()))
		ok(t, c.do(exact))
		if !bytes.Equal(exact.Written(), full.Written()) {
			t.Errorf("%s differs in a room of its own size", c.name)
		}
	}
}

func TestWriterRefusesWhatNoReaderCouldRead(t *testing.T) {
	w := NewWriter(make([]byte, 4096))
	long := strings.Repeat("n", maxName+1)
	for _, c := range []struct {
		what string
		err  error
		want error
	}{
		{"name of 32 bytes", w.Uint32Desc(long, 1), ErrBadName},
		{"empty name", w.Uint64Desc("", 1), ErrBadName},
		{"NUL in a name", w.Uint32Desc("a\x00b", 1), ErrBadName},
		{"NUL in a string", w.String(TypeBootArgs, "a\x00b"), ErrBadName},
		{"container as bytes", w.Bytes(TypeContainerBegin, nil), ErrReserved},
		{"array as bytes", w.Bytes(TypeArrayPad0+3, nil), ErrReserved},
		{"end as bytes", w.Bytes(BufferEnd, nil), ErrReserved},
		{"definition as struct", w.Struct(TypeDefinition, Timebase{}), ErrReserved},
		{"begin without magic", w.Begin(TypeTask), ErrReserved},
		{"struct of another size", w.Struct(TypeTaskSnapshot, Timebase{}), ErrSizeMismatch},
		{"scalar of another size", w.Struct(TypeKernPageSize, uint64(1)), ErrSizeMismatch},
		{"array and its bytes", w.Array(0x7777, 4, 2, make([]byte, 7)), ErrSizeMismatch},
		{"elements of no size", w.Array(0x7777, 0, 2, nil), ErrSizeMismatch},
		{"negative count", w.Array(0x7777, -1, -4, make([]byte, 4)), ErrSizeMismatch},
		{"not a struct", w.Struct(0x7777, "s"), ErrNotFixed},
		{"nil", w.Struct(0x7777, nil), ErrNotFixed},
		{"not a slice", w.StructArray(0x7777, 5), ErrNotFixed},
		{"slice of strings", w.StructArray(0x7777, []string{"a"}), ErrNotFixed},
		{"definition of a string", w.Define(TypeBootArgs), ErrNotDefinable},
		{"definition of the unknown", w.Define(0x7777), ErrNotDefinable},
	} {
		if !errors.Is(c.err, c.want) {
			t.Errorf("%s: %v, want %v", c.what, c.err, c.want)
		}
	}
	if w.Len() != 0 {
		t.Errorf("%d bytes written by calls that all failed", w.Len())
	}
}

func TestDescsRoundTrip(t *testing.T) {
	b := buffer(t, MagicStackshot, func(w ItemWriter) {
		ok(t, w.Bytes(TypeStringDesc, descOf("string", "text")))
		ok(t, w.Uint32Desc("u32", 1<<32-1))
		ok(t, w.Uint64Desc("u64", 1<<64-1))
		ok(t, w.Bytes(TypeInt32Desc, descOf("s32", int32(-2))))
		ok(t, w.Bytes(TypeInt64Desc, descOf("s64", int64(-3))))
		ok(t, w.Bytes(TypeBytesDesc, descOf("bytes", []byte{0, 1, 0})))
		ok(t, w.Bytes(TypeBytesDesc, descOf(strings.Repeat("n", maxName), []byte{})))
	})
	want := []struct {
		name string
		v    any
	}{{"string", "text"}, {"u32", uint32(1<<32 - 1)}, {"u64", uint64(1<<64 - 1)}, {"s32", int32(-2)},
		{"s64", int64(-3)}, {"bytes", []byte{0, 1, 0}}, {strings.Repeat("n", maxName), []byte{}}}
	got, err := readAll(b)
	ok(t, err)
	for i, it := range got {
		name, v, isDesc := it.Desc()
		if gb, isBytes := v.([]byte); isBytes {
			if !bytes.Equal(gb, want[i].v.([]byte)) {
				t.Errorf("%s: % x", name, gb)
			}
		} else if v != want[i].v {
			t.Errorf("%s: %T %v, want %T %v", name, v, v, want[i].v, want[i].v)
		}
		if !isDesc || name != want[i].name {
			t.Errorf("item %d: %q %v, want %q", i, name, isDesc, want[i].name)
		}
	}
}
