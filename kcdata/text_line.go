package kcdata

import (
	"bytes"
	"encoding/hex"
	"strconv"
)

// hexLine is how many bytes stand on one line of hex.
const hexLine = 32

// hexFrom is the value from which a u64 is shown in hexadecimal: it is an
// address or a set of bits then.
const hexFrom = 1 << 48

// fields writes b's fields, one a line, with base added to their offsets and
// prefix before their names, and gaps between them as hex. It gives the end of
// the last field.
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
	t.pad()
	l := append(t.line[:0], '+')
	l = strconv.AppendInt(l, int64(off), 10)
	l = append(l, ' ')
	l = append(l, f.Elem.String()...)
	if f.Count > 0 {
		l = append(l, '[')
		l = strconv.AppendInt(l, int64(f.Count), 10)
		l = append(l, ']')
	}
	l = append(l, ' ')
	l = append(l, fieldLabel(prefix, f.Name)...)
	l = append(l, " ="...)
	l = appendValue(l, f, b)
	t.line = append(l, '\n')
	t.write()
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

// hex writes b, which stands at off of the payload, where it is not all zero.
func (t *textWriter) hex(name string, b []byte, off int) {
	for len(b) > 0 && t.left >= 0 {
		n := min(len(b), hexLine)
		if !allZero(b[:n]) {
			t.pad()
			l := append(t.line[:0], '+')
			l = strconv.AppendInt(l, int64(off), 10)
			l = append(l, " hex["...)
			l = strconv.AppendInt(l, int64(n), 10)
			l = append(l, "] "...)
			l = append(l, name...)
			l = append(l, " = "...)
			l = hex.AppendEncode(l, b[:n])
			t.line = append(l, '\n')
			t.write()
		}
		b, off = b[n:], off+n
	}
}

func allZero(b []byte) bool {
	for _, x := range b {
		if x != 0 {
			return false
		}
	}
	return true
}
