package kcdata

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"
)

// rich is a buffer with every class of item in it.
func rich(t testing.TB) []byte {
	inner := buffer(t, MagicCrashinfo, func(w ItemWriter) {
		ok(t, w.Struct(TypeCrashCrashedThreadID, uint64(42)))
	})
	return buffer(t, MagicStackshot, func(w ItemWriter) {
		ok(t, w.Uint32Desc("stackshot_in_pid", 7))
		ok(t, w.Bytes(TypeStringDesc, descOf("engine", "trap")))
		ok(t, w.String(TypeBootArgs, "quiet splash"))
		ok(t, w.Struct(TypeTimebase, Timebase{1, 1}))
		ok(t, w.Define(TypeLinuxTask))
		ok(t, w.BeginContainer(TypeTask, 7))
		ok(t, w.Struct(TypeTaskSnapshot, TaskSnapshot{UniquePid: 7, Pid: 7, Comm: [32]byte{'i', 'n', 'i', 't'}}))
		ok(t, w.Struct(TypeLinuxTask, &LinuxTask{Tgid: 7, ExitCode: -1}))
		ok(t, w.BeginContainer(TypeThread, 8))
		ok(t, w.Struct(TypeThreadSnapshot, &ThreadSnapshot{ThreadID: 8, BasePriority: -4}))
		ok(t, w.Uint64s(TypeKernStackLR64, []uint64{0xffffffff81000000, 0xffffffff81000010, 3}))
		ok(t, w.EndContainer(8))
		ok(t, w.StructArray(TypeThreadWaitinfo, []ThreadWaitinfo{{Owner: 1, Waiter: 8, WaitType: 1, PortLabelID: -1}, {Owner: 2}}))
		ok(t, w.EndContainer(7))
		ok(t, w.Bytes(TypeNested, inner))
		ok(t, w.Bytes(0x7777, []byte{1, 2, 3}))
		ok(t, w.Struct(TypeDuration, Duration{1, 2, 3}))
		ok(t, w.Uint64Desc("stackshot_out_flags", 1<<63))
	})
}

func TestK5EveryTruncationIsAFormatError(t *testing.T) {
	all := map[string][]byte{"rich": rich(t)}
	for e := EnvelopeZlib; e <= EnvelopeZstd; e++ {
		var b bytes.Buffer
		ok(t, Compress(&b, all["rich"], e))
		all[e.String()] = b.Bytes()
	}
	for name, b := range all {
		for n := range len(b) {
			plain, _, err := Unwrap(b[:n], 1<<20)
			if err == nil {
				_, err = Check(plain)
			}
			var fe *FormatError
			if !errors.As(err, &fe) {
				t.Fatalf("%s cut to %d of %d bytes: %v", name, n, len(b), err)
			}
			if fe.What == "" || fe.Err == nil || fe.Offset > n {
				t.Errorf("%s cut to %d bytes: error says nothing: %+v", name, n, fe)
			}
		}
	}
}

func TestK5SizeAttacks(t *testing.T) {
	zeros := make([]byte, 256)
	stack := func(count uint64) uint64 { return uint64(TypeKernStackLR64)<<32 | count }
	for _, c := range []struct {
		what string
		b    []byte
		want error
	}{
		{"empty", nil, ErrTruncated},
		{"half a marker", rawItem(MagicStackshot, 0, 0)[:8], ErrTruncated},
		{"no end", rawItem(MagicStackshot, 0, 0), ErrTruncated},
		{"other magic", rawItem(0x12345678, 0, 0), ErrBadMagic},
		{"byteswapped magic", rawItem(0x0758a259, 0, 0), ErrBadMagic},
		{"begin of 4 GiB", rawItem(MagicStackshot, 0xffffffff, 0), ErrBadSize},
		{"item of 4 GiB", around(rawItem(TypeTimebase, 0xffffffff, 0)), ErrTruncated},
		{"item of 2 GiB", around(rawItem(TypeTimebase, 0x80000000, 0)), ErrTruncated},
		{"item past the end by 1", around(rawItem(TypeTimebase, 17, 0)), ErrTruncated},
		{"more padding than item", around(rawItem(TypeTimebase, 8, 9, zeros[:8]...)), ErrBadSize},
		{"container begin of 3 bytes", around(rawItem(TypeContainerBegin, 3, 1, zeros[:3]...)), ErrBadSize},
		{"container left open", around(rawItem(TypeContainerBegin, 16, 1, zeros[:16]...)), ErrBadContainer},
		{"container never opened", around(rawItem(TypeContainerEnd, 0, 1)), ErrBadContainer},
		{"another container closed", around(rawItem(TypeContainerBegin, 16, 1, zeros[:16]...), rawItem(TypeContainerEnd, 0, 2)), ErrBadContainer},
		{"array of 4 G elements", around(rawItem(TypeArrayPad0, 16, stack(0xffffffff), zeros[:16]...)), ErrBadArray},
		{"array that does not divide", around(rawItem(TypeArrayPad0, 16, stack(3), zeros[:16]...)), ErrBadArray},
		{"array of nothing in 16 bytes", around(rawItem(TypeArrayPad0, 16, stack(0), zeros[:16]...)), ErrBadArray},
		{"empty array with padding", around(rawItem(TypeArrayPad0+3, 0, stack(0))), ErrBadArray},
		{"array that is all padding", around(rawItem(TypeArrayPadF, 8, stack(1), zeros[:8]...)), ErrBadArray},
		{"old array of a type with no fixed size", around(rawItem(TypeArray, 16, stack(2), zeros[:16]...)), ErrBadArray},
		{"old array short by 1", around(rawItem(TypeArray, 31, uint64(TypeKernStackFrame64)<<32|2, zeros[:31]...)), ErrBadArray},
		{"old array whose size overflows", around(rawItem(TypeArray, 16, uint64(TypeKernStackFrame64)<<32|0xffffffff, zeros[:16]...)), ErrBadArray},
		{"definition without its head", around(rawItem(TypeDefinition, 39, 0, zeros[:39]...)), ErrBadDefinition},
		{"definition of 4 G fields", around(rawItem(TypeDefinition, 40, 0, append([]byte{1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff}, zeros[:32]...)...)), ErrBadDefinition},
		{"definition with element type 0", around(rawItem(TypeDefinition, 80, 0, append([]byte{1, 0, 0, 0, 1, 0, 0, 0}, zeros[:72]...)...)), ErrBadDefinition},
	} {
		_, err := readAll(c.b)
		if err == nil {
			t.Errorf("%s: accepted", c.what)
			continue
		}
		wantFormat(t, err, c.want)
	}
}

// Every count from 0 to 19 with every padding: an array is what its numbers say
// or it is refused.
func TestK5ArrayCountsAndPads(t *testing.T) {
	for size := range 49 {
		for pad := range 16 {
			for count := range 20 {
				b := around(rawItem(TypeArrayPad0+Type(pad), uint32(size), uint64(0x7777)<<32|uint64(count), make([]byte, size)...))
				items, err := readAll(b)
				sound := pad <= size && count > 0 && size > pad && (size-pad)%count == 0 || count == 0 && size == 0 && pad == 0
				if sound != (err == nil) {
					t.Fatalf("%d bytes, pad %d, count %d: %v", size, pad, count, err)
				}
				if err != nil {
					continue
				}
				elem, n, got := items[0].Elem()
				if elem != 0x7777 || got != count || n*got != len(items[0].Data) || len(items[0].Data) != size-pad {
					t.Errorf("%d bytes, pad %d, count %d: read as %d of %d in %d", size, pad, count, got, n, len(items[0].Data))
				}
			}
		}
	}
}

// Old files recorded the padding without the bit that says so, or none at all.
func TestK7PaddingAndLegacySizes(t *testing.T) {
	for _, c := range []struct {
		typ   Type
		size  int
		flags uint64
		want  int
	}{
		{TypeThreadSnapshot, 112, 0, 104},
		{TypeThreadSnapshot, 112, 0x80, 112},
		{TypeThreadSnapshot, 112, 0x08, 104},
		{TypeThreadSnapshot, 112, 0x88, 104},
		{TypeThreadSnapshot, 128, 0x80, 128},
		{TypeThreadSnapshot, 128, 0, 128},
		{TypeSharedCacheLoadinfo, 32, 0, 24},
		{TypeSharedCacheLoadinfo, 32, 0x80, 32},
		{TypeSharedCacheLoadinfo, 48, 0, 48},
		{TypeTaskSnapshot, 128, 0x88, 120},
		{TypeTaskSnapshot, 128, 0, 128},
		{0x7777, 16, 0x8f, 1},
		{0x7777, 15, 0x0f, 0},
	} {
		items, err := readAll(around(rawItem(c.typ, uint32(c.size), c.flags, make([]byte, c.size)...)))
		ok(t, err)
		if len(items[0].Data) != c.want {
			t.Errorf("%v of %d bytes, flags %#x: %d bytes of payload, want %d", c.typ, c.size, c.flags, len(items[0].Data), c.want)
		}
	}
}

func TestK6DepthIsBounded(t *testing.T) {
	nest := func(depth int) []byte {
		var items [][]byte
		for i := range depth {
			items = append(items, rawItem(TypeContainerBegin, 16, uint64(i), make([]byte, 16)...))
		}
		for i := range depth {
			items = append(items, rawItem(TypeContainerEnd, 0, uint64(depth-1-i)))
		}
		return around(items...)
	}
	items, err := readAll(nest(MaxDepth))
	ok(t, err)
	for i, it := range items {
		if want := min(i, 2*MaxDepth-1-i); it.Depth != want {
			t.Errorf("item %d has depth %d, want %d", i, it.Depth, want)
		}
	}
	_, err = readAll(nest(MaxDepth + 1))
	wantFormat(t, err, ErrTooDeep)
	_, err = readAll(nest(100000))
	wantFormat(t, err, ErrTooDeep)
}

func TestK6NestedBuffersAreBounded(t *testing.T) {
	b := around()
	for range MaxNested {
		b = around(rawItem(TypeNested, uint32(len(b)), 0, b...))
	}
	if _, err := Decode(b); err != nil {
		t.Errorf("%d nested buffers: %v", MaxNested, err)
	}
	b = around(rawItem(TypeNested, uint32(len(b)), 0, b...))
	_, err := Decode(b)
	wantFormat(t, err, ErrTooDeep)
}

func TestK7LongerAndShorterStructs(t *testing.T) {
	full := packed(&ThreadSnapshot{ThreadID: 1, BasePriority: -2, ThreadT: 3, RequestedPolicy: 4, EffectivePolicy: 5})
	for n := range len(full) + 40 {
		payload := append(bytes.Clone(full), make([]byte, 40)...)[:n]
		var got ThreadSnapshot
		if err := Unmarshal(payload, &got); n == 0 {
			wantFormat(t, err, ErrTruncated)
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		want := ThreadSnapshot{}
		s, _ := Lookup(TypeThreadSnapshot)
		for _, f := range s.FieldsFor(n) {
			copyField(t, &want, f, full)
		}
		if got != want {
			t.Errorf("%d bytes: %+v, want %+v", n, got, want)
		}
	}
}

// copyField sets one field by the standard library's decoder.
func copyField(t *testing.T, dst *ThreadSnapshot, f Field, full []byte) {
	t.Helper()
	b := make([]byte, len(full))
	if _, err := binary.Encode(b, binary.LittleEndian, dst); err != nil {
		t.Fatal(err)
	}
	copy(b[f.Offset:f.End()], full[f.Offset:])
	if _, err := binary.Decode(b, binary.LittleEndian, dst); err != nil {
		t.Fatal(err)
	}
}

func TestK7UnknownTypesAreSkipped(t *testing.T) {
	for _, typ := range []Type{0x7, 0x10, 0x15, 0x1f, 0x40, 0x7ff, 0x9ff, 0x4CFE, 0xffffffff} {
		b := around(rawItem(typ, 16, 0x83, make([]byte, 16)...), rawItem(TypeTimebase, 8, 0, make([]byte, 8)...))
		items, err := readAll(b)
		ok(t, err)
		if len(items) != 2 || len(items[0].Data) != 13 || items[1].Type != TypeTimebase {
			t.Errorf("%#x: %+v", uint32(typ), items)
		}
		_, err = Decode(b)
		ok(t, err)
	}
}

func TestK5EndMarkerEndsTheWalk(t *testing.T) {
	b := append(rich(t), 0xde, 0xad)
	n, err := Check(b)
	ok(t, err)
	if n != len(b)-2 {
		t.Errorf("length %d, want %d", n, len(b)-2)
	}
}

func TestMalformedDescIsNoDesc(t *testing.T) {
	name := make([]byte, descName)
	full := bytes.Repeat([]byte{'n'}, descName)
	for _, c := range []struct {
		typ     Type
		payload []byte
		want    bool
	}{
		{TypeUint32Desc, append(bytes.Clone(name), 1, 2, 3, 4), true},
		{TypeUint32Desc, append(bytes.Clone(name), 1, 2, 3), false},
		{TypeUint64Desc, append(bytes.Clone(name), 1, 2, 3, 4), false},
		{TypeUint32Desc, append(full, 1, 2, 3, 4), false},
		{TypeStringDesc, name, false},
		{TypeBytesDesc, name, true},
		{TypeBytesDesc, name[:31], false},
		{TypeTimebase, append(bytes.Clone(name), 1, 2, 3, 4), false},
	} {
		items, err := readAll(around(rawItem(c.typ, uint32(len(c.payload)), 0x80, c.payload...)))
		ok(t, err)
		if _, _, got := items[0].Desc(); got != c.want {
			t.Errorf("%v of %d bytes: desc %v, want %v", c.typ, len(c.payload), got, c.want)
		}
	}
}
