package kcdata

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
)

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// buffer is a whole buffer with the items that fill writes.
func buffer(t testing.TB, magic Type, fill func(ItemWriter)) []byte {
	t.Helper()
	w := NewWriter(make([]byte, 1<<20))
	ok(t, w.Begin(magic))
	fill(w)
	ok(t, w.End())
	return w.Written()
}

// rawItem is an item with any header: what no writer of ours would write.
func rawItem(typ Type, size uint32, flags uint64, payload ...byte) []byte {
	b := make([]byte, headerSize, headerSize+len(payload))
	binary.LittleEndian.PutUint32(b, uint32(typ))
	binary.LittleEndian.PutUint32(b[4:], size)
	binary.LittleEndian.PutUint64(b[8:], flags)
	return append(b, payload...)
}

// packed is the packed form of a struct or number.
func packed(v any) []byte {
	b, err := binary.Append(nil, binary.LittleEndian, v)
	if err != nil {
		panic(err)
	}
	return b
}

// descOf is the payload of a desc: its name in 32 bytes, then its value, text with a NUL.
func descOf(name string, value any) []byte {
	if s, isText := value.(string); isText {
		value = append([]byte(s), 0)
	}
	return append(append([]byte(name), make([]byte, descName-len(name))...), packed(value)...)
}

// around puts a begin and an end marker around items.
func around(items ...[]byte) []byte {
	b := rawItem(MagicStackshot, 0, 0)
	for _, it := range items {
		b = append(b, it...)
	}
	return append(b, rawItem(BufferEnd, 0, 0)...)
}

func readAll(plain []byte) ([]Item, error) {
	r, err := NewReader(plain)
	if err != nil {
		return nil, err
	}
	var out []Item
	for it, err := range r.Items() {
		if err != nil {
			return out, err
		}
		out = append(out, it)
	}
	return out, nil
}

// wantFormat checks that err is a *FormatError of the given kind.
func wantFormat(t testing.TB, err, kind error) {
	t.Helper()
	var fe *FormatError
	if !errors.As(err, &fe) || !errors.Is(err, kind) {
		t.Errorf("error %v, want a *FormatError: %v", err, kind)
	}
}

// call is one call of an ItemWriter, kept so that it can be made on several.
type call struct {
	name string
	do   func(ItemWriter) error
	typ  Type   // that the item should read as
	data []byte // nil: not compared
}

// randomCalls makes n calls with balanced containers.
func randomCalls(rng *rand.Rand, n int) []call {
	var calls []call
	var open []uint64
	for range n {
		switch k := rng.IntN(10); {
		case k == 0 && len(open) < MaxDepth:
			id := rng.Uint64()
			open = append(open, id)
			calls = append(calls, call{"begin", func(w ItemWriter) error { return w.BeginContainer(TypeThread, id) }, TypeContainerBegin, nil})
		case k == 1 && len(open) > 0:
			calls = append(calls, closing(open[len(open)-1]))
			open = open[:len(open)-1]
		default:
			calls = append(calls, randomCall(rng))
		}
	}
	for len(open) > 0 {
		calls = append(calls, closing(open[len(open)-1]))
		open = open[:len(open)-1]
	}
	return calls
}

func closing(id uint64) call {
	return call{"end", func(w ItemWriter) error { return w.EndContainer(id) }, TypeContainerEnd, nil}
}

func randomCall(rng *rand.Rand) call {
	b := randomBytes(rng, rng.IntN(40))
	name := strings.Repeat("n", 1+rng.IntN(maxName))
	v := rng.Uint64()
	switch rng.IntN(9) {
	case 0:
		return call{"bytes", func(w ItemWriter) error { return w.Bytes(0x7777, b) }, 0x7777, b}
	case 1:
		s := strings.Repeat("s", len(b))
		return call{"string", func(w ItemWriter) error { return w.String(TypeLinuxHostname, s) }, TypeLinuxHostname, append([]byte(s), 0)}
	case 2:
		size := 1 + rng.IntN(20)
		count := rng.IntN(20)
		elems := randomBytes(rng, size*count)
		return call{"array", func(w ItemWriter) error { return w.Array(0x7778, size, count, elems) }, TypeArray, elems}
	case 3:
		words := make([]uint64, rng.IntN(9))
		for i := range words {
			words[i] = rng.Uint64()
		}
		return call{"uint64s", func(w ItemWriter) error { return w.Uint64s(TypeKernStackLR64, words) }, TypeArray, nil}
	case 4:
		return call{"uint32desc", func(w ItemWriter) error { return w.Uint32Desc(name, uint32(v)) }, TypeUint32Desc, nil}
	case 5:
		return call{"bytesdesc", func(w ItemWriter) error { return w.Bytes(TypeBytesDesc, descOf(name, b)) }, TypeBytesDesc, nil}
	case 6:
		return call{"define", func(w ItemWriter) error { return w.Define(TypeLinuxTask) }, TypeDefinition, nil}
	case 7:
		s := &LinuxSignals{Pending: v, Blocked: ^v}
		return call{"struct", func(w ItemWriter) error { return w.Struct(TypeLinuxSignals, s) }, TypeLinuxSignals, packed(s)}
	}
	sl := make([]LinuxThreadNS, rng.IntN(4))
	for i := range sl {
		sl[i] = LinuxThreadNS{rng.Uint32(), rng.Uint32()}
	}
	return call{"structs", func(w ItemWriter) error { return w.StructArray(TypeLinuxThreadNS, sl) }, TypeArray, nil}
}

func randomBytes(rng *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}
