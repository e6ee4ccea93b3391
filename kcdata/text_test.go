package kcdata

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
)

// parseText is the way back from the text form: it lays down each payload line
// at its offset and knows no type but the element types.
func parseText(text string) ([]byte, error) {
	p := textParser{}
	sc := bufio.NewScanner(strings.NewReader(text))
	sc.Buffer(nil, 1<<24)
	for sc.Scan() {
		if err := p.line(strings.TrimLeft(sc.Text(), " ")); err != nil {
			return nil, fmt.Errorf("%q: %w", sc.Text(), err)
		}
	}
	return p.out, sc.Err()
}

type textParser struct {
	out  []byte
	item int // offset of the item whose payload lines follow
}

func (p *textParser) put(off int, b []byte) {
	if n := off + len(b); n > len(p.out) {
		p.out = append(p.out, make([]byte, n-len(p.out))...)
	}
	copy(p.out[off:], b)
}

func (p *textParser) line(l string) error {
	if strings.HasPrefix(l, "@") {
		return p.itemLine(l)
	}
	left, value, ok := strings.Cut(l, " = ")
	words := strings.Fields(left)
	if !ok || len(words) != 3 {
		return fmt.Errorf("not a payload line")
	}
	off, err := strconv.Atoi(strings.TrimPrefix(words[0], "+"))
	if err != nil {
		return err
	}
	b, err := parseValue(words[1], value)
	if err != nil {
		return err
	}
	p.put(p.item+headerSize+off, b)
	return nil
}

func (p *textParser) itemLine(l string) error {
	var off, typ, size, flags uint64
	var name string
	if _, err := fmt.Sscanf(l, "@%x %s type=0x%x size=%d flags=0x%x", &off, &name, &typ, &size, &flags); err != nil {
		return err
	}
	p.item = int(off)
	p.put(p.item, rawItem(Type(typ), uint32(size), flags))
	if Type(typ) != BufferEnd {
		p.put(p.item+headerSize+int(size), nil)
	}
	return nil
}

func parseValue(typ, value string) ([]byte, error) {
	typ, count, _ := strings.Cut(strings.TrimSuffix(typ, "]"), "[")
	switch typ {
	case "hex":
		return hex.DecodeString(value)
	case "char":
		s, err := strconv.Unquote(value)
		if err != nil {
			return nil, err
		}
		n, _ := strconv.Atoi(count)
		return append([]byte(s), make([]byte, max(n, 1)-len(s))...), nil
	}
	for e := ElemInt8; e <= ElemUint64; e++ {
		if e.String() == typ {
			return parseNumbers(e, value)
		}
	}
	return nil, fmt.Errorf("element type %q", typ)
}

func parseNumbers(e ElemType, value string) ([]byte, error) {
	var out []byte
	for _, w := range strings.Fields(value) {
		v, err := strconv.ParseUint(w, 0, 64)
		if e.signed() {
			var s int64
			s, err = strconv.ParseInt(w, 10, 64)
			v = uint64(s)
		}
		if err != nil {
			return nil, err
		}
		out = append(out, binary.LittleEndian.AppendUint64(nil, v)[:e.Size()]...)
	}
	return out, nil
}

// textRoundTrip checks that plain's text is plain again.
func textRoundTrip(t testing.TB, plain []byte) string {
	t.Helper()
	n, err := Check(plain)
	ok(t, err)
	var b bytes.Buffer
	ok(t, Text(&b, plain, math.MaxInt64))
	got, err := parseText(b.String())
	ok(t, err)
	if !bytes.Equal(got, plain[:n]) {
		t.Errorf("text of\n%s is\n%s but comes back as\n%s", hex.Dump(plain[:n]), b.String(), hex.Dump(got))
	}
	return b.String()
}

func TestK12TextRoundTrip(t *testing.T) {
	textRoundTrip(t, rich(t))
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 12))
		textRoundTrip(t, buffer(t, MagicStackshot, func(w ItemWriter) {
			for _, c := range randomCalls(rng, 40) {
				ok(t, c.do(w))
			}
		}))
	}
}

func TestK12TextRoundTripOfSamples(t *testing.T) {
	for _, b := range samples(t) {
		textRoundTrip(t, b)
	}
}

func TestK12TextHoldsWhatNoSpecExplains(t *testing.T) {
	junk := bytes.Repeat([]byte{0xA5}, 48)
	inner := around(rawItem(TypeTimebase, 8, 0x80, junk[:8]...))
	for what, b := range map[string][]byte{
		"dirty padding":     around(rawItem(TypeTimebase, 16, 0x88, junk[:16]...)),
		"dirty container":   around(rawItem(TypeContainerBegin, 16, 1, junk[:16]...), rawItem(TypeContainerEnd, 16, 1, junk[:16]...)),
		"text after a NUL":  around(rawItem(TypeBootArgs, 16, 0x80, []byte("a\x00b\nc\xff\"=\x00\x00\x00\x00\x00\x00\x00\x00")...)),
		"longer struct":     around(rawItem(TypeTimebase, 48, 0x80, junk...)),
		"short scalar":      around(rawItem(TypeKernPageSize, 3, 0x80, junk[:3]...)),
		"malformed desc":    around(rawItem(TypeUint64Desc, 33, 0x80, junk[:33]...)),
		"empty desc":        around(rawItem(TypeBytesDesc, 32, 0x80, make([]byte, 32)...)),
		"begin with a body": append(rawItem(MagicStackshot, 16, 0x80, junk[:16]...), rawItem(BufferEnd, 0, 0)...),
		"end with flags":    append(rawItem(MagicStackshot, 0, 0), rawItem(BufferEnd, 77, 99)...),
		"broken nested":     around(rawItem(TypeNested, 48, 0x80, junk...)),
		"more than nested":  around(rawItem(TypeNested, uint32(len(inner)+48), 0x83, append(inner, junk...)...)),
		"old array's tail":  around(rawItem(TypeArray, 48, uint64(TypeKernStackFrame64)<<32|1, junk...)),
		"longer elements":   around(rawItem(TypeArrayPad0, 48, uint64(TypeTimebase)<<32|2, junk...)),
	} {
		t.Run(what, func(t *testing.T) { textRoundTrip(t, b) })
	}
}

// A field's name from a file cannot forge lines.
func TestTextLabelsAreSafe(t *testing.T) {
	s := structSpec(0x7777, "x", "evil\n@0 X", Timebase{})
	s.Fields[0].Name = "a = 1\n+0"
	b := make([]byte, s.definitionSize())
	s.putDefinition(b)
	text := textRoundTrip(t, around(rawItem(TypeDefinition, uint32(len(b)), 0, b...), rawItem(0x7777, 8, 0x80, 1, 2, 3, 4, 5, 6, 7, 8)))
	if strings.Contains(text, "\n@0 ") || !strings.Contains(text, " evil??0?X ") {
		t.Errorf("text:\n%s", text)
	}
}

func TestTextOfADamagedBuffer(t *testing.T) {
	whole := rich(t)
	var b bytes.Buffer
	err := Text(&b, whole[:len(whole)-20], math.MaxInt64)
	wantFormat(t, err, ErrTruncated)
	if !strings.Contains(b.String(), "ts_p_comm = \"init\"") {
		t.Errorf("what was sound is missing:\n%s", b.String())
	}
}

// The form itself, as the documentation states it.
func ExampleText() {
	w := NewWriter(make([]byte, 512))
	for _, err := range []error{
		w.Begin(MagicStackshot),
		w.BeginContainer(TypeThread, 8),
		w.Uint64s(TypeKernStackLR64, []uint64{0xffffffff81000010, 3}),
		w.String(TypeThreadName, "main"),
		w.EndContainer(8),
		w.Bytes(0x7777, []byte{1, 2}),
		w.End(),
	} {
		if err != nil {
			panic(err)
		}
	}
	var b strings.Builder
	if err := Text(&b, w.Written(), math.MaxInt64); err != nil {
		panic(err)
	}
	fmt.Print(b.String())
	// Output:
	// @00000000 STACKSHOT type=0x59a25807 size=0 flags=0x80
	//   @00000010 CONTAINER_BEGIN type=0x13 size=16 flags=0x8 THREAD id=8
	//     +0 uint32_t type = 2308
	//     @00000030 ARRAY type=0x20 size=16 flags=0x91400000002 KERN_STACKLR64 count=2 element=8
	//       +0 uint64_t [0].lr = 0xffffffff81000010
	//       +8 uint64_t [1].lr = 3
	//     @00000050 THREAD_NAME type=0x909 size=16 flags=0x8b
	//       +0 char[5] value = "main"
	//   @00000070 CONTAINER_END type=0x14 size=0 flags=0x8 id=8
	//   @00000080 UNKNOWN type=0x7777 size=16 flags=0x8e
	//     +0 hex[16] rest = 01020000000000000000000000000000
	// @000000a0 BUFFER_END type=0xf19158ed size=0 flags=0x0
}

// What is too long for a line is on several, and the way back is the same.
func TestTextLongStrings(t *testing.T) {
	long := bytes.Repeat([]byte("a\x01"), maxLine)
	w := NewWriter(make([]byte, 1<<20))
	desc := append(append([]byte("name"), make([]byte, descName-4)...), long...)
	for _, err := range []error{
		w.Begin(MagicStackshot), w.Bytes(TypeLinuxHostname, long), w.Bytes(TypeStringDesc, desc), w.Bytes(TypeBytesDesc, desc), w.End(),
	} {
		ok(t, err)
	}
	for line := range strings.Lines(textRoundTrip(t, w.Written())) {
		if len(line) > 5*maxLine {
			t.Errorf("a line of %d bytes", len(line))
		}
	}
}

// Text ends where it may be no longer, and says where that is.
func TestTextIsBounded(t *testing.T) {
	plain := rich(t)
	var whole bytes.Buffer
	ok(t, Text(&whole, plain, math.MaxInt64))
	for most := 0; most < whole.Len(); most += 97 {
		var b bytes.Buffer
		err := Text(&b, plain, int64(most))
		if wantFormat(t, err, ErrTooLarge); !bytes.HasPrefix(whole.Bytes(), b.Bytes()) && most > 0 {
			t.Fatalf("with %d bytes it is not the beginning of the whole", most)
		}
		if b.Len() < most-1 && b.Len() < whole.Len() {
			t.Fatalf("%d bytes, of %d that there may be", b.Len(), most)
		}
	}
}
