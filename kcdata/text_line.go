package kcdata

import (
	"bytes"
	"encoding/hex"
	"strconv"
)

// hexLine is how many bytes stand on one line of hex.
const hexLine = 32

// hexFrom is the value from which a u64 is shown in hexadecimal: a larger one is an address
// or a set of bits.
const hexFrom = 1 << 48

// fields writes the fields of b, one on each line, and the gaps between them as hex. It adds
// base to their offsets and puts prefix before their names. It returns the end of the last
// field.
func (t *textWriter) fields(fields []Field, b []byte, base int, prefix string) int {
	done := 0
	for _, f := range fields {
		if t.left < 0 {
			break
		}
		t.hex("gap", b[done:f.Offset], base+done)
		t.field(f, b[f.Offset:f.End()], base+f.Offset, prefix)
		done = f.End()
	}
	return done
}

func (t *textWriter) field(f Field, b []byte, off int, prefix string) {
	t.line = t.begin(off, f.Elem.String(), f.Count, fieldLabel(prefix, f.Name))
	t.line = append(appendValue(t.line, f, b), '\n')
	t.write()
}

// begin makes a payload line up to its values. count is the number of an array's elements; 0
// for a scalar.
func (t *textWriter) begin(off int, elem string, count int, label string) []byte {
	l := t.line[:0]
	for range t.indent {
		l = append(l, "  "...)
	}
	l = append(l, '+')
	l = strconv.AppendInt(l, int64(off), 10)
	l = append(l, ' ')
	l = append(l, elem...)
	if count > 0 {
		l = append(l, '[')
		l = strconv.AppendInt(l, int64(count), 10)
		l = append(l, ']')
	}
	l = append(l, ' ')
	l = append(l, label...)
	return append(l, " ="...)
}

func fieldLabel(prefix, name string) string {
	switch {
	case name == "" && prefix == "":
		return "value"
	case name == "":
		return prefix
	case prefix == "":
		return label(name)
	}
	return prefix + "." + label(name)
}

func appendValue(l []byte, f Field, b []byte) []byte {
	if f.Elem == ElemChar {
		l = append(l, ' ')
		return strconv.AppendQuote(l, string(bytes.TrimRight(b, "\x00")))
	}
	size := f.Elem.Size()
	for ; len(b) >= size; b = b[size:] {
		v := getElem(b, f.Elem)
		l = append(l, ' ')
		switch {
		case f.Elem.signed():
			l = strconv.AppendInt(l, int64(v), 10)
		case v >= hexFrom:
			l = append(l, "0x"...)
			l = strconv.AppendUint(l, v, 16)
		default:
			l = strconv.AppendUint(l, v, 10)
		}
	}
	return l
}

// hex writes b, which stands at off in the payload. It leaves out lines that are all zero.
func (t *textWriter) hex(name string, b []byte, off int) {
	for len(b) > 0 && t.left >= 0 {
		n := min(len(b), hexLine)
		if !allZero(b[:n]) {
			t.line = append(t.begin(off, "hex", n, name), ' ')
			t.line = append(hex.AppendEncode(t.line, b[:n]), '\n')
			t.write()
		}
		b, off = b[n:], off+n
	}
}

func allZero(b []byte) bool { return len(bytes.TrimLeft(b, "\x00")) == 0 }
