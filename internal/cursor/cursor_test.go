package cursor

import (
	"encoding/binary"
	"math"
	"testing"
)

// appendSLEB appends v in the form that SLEB reads.
func appendSLEB(b []byte, v int64) []byte {
	for {
		low := byte(v & 0x7f)
		v >>= 7
		if v == 0 && low&0x40 == 0 || v == -1 && low&0x40 != 0 {
			return append(b, low)
		}
		b = append(b, low|0x80)
	}
}

func TestNumbersReadAsWritten(t *testing.T) {
	for _, v := range []int64{0, 1, -1, 63, 64, -64, -65, 127, 128, math.MaxInt64, math.MinInt64} {
		c := Cursor{Data: appendSLEB(nil, v)}
		if got := c.SLEB(); got != v || c.Bad || c.Left() != 0 {
			t.Errorf("%d reads as %d, bad %v, %d left", v, got, c.Bad, c.Left())
		}
		u := Cursor{Data: binary.AppendUvarint(nil, uint64(v))}
		if got := u.ULEB(); got != uint64(v) || u.Bad || u.Left() != 0 {
			t.Errorf("%d reads as %d, bad %v, %d left", uint64(v), got, u.Bad, u.Left())
		}
	}
	c := Cursor{Data: []byte("\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0fname\x00x")}
	if a, b, d, e := c.U8(), c.U16(), c.U32(), c.U64(); a != 1 || b != 0x302 || d != 0x7060504 || e != 0x0f0e0d0c0b0a0908 {
		t.Errorf("%#x %#x %#x %#x", a, b, d, e)
	}
	if s := c.Text(4); string(s) != "name" || c.Left() != 1 {
		t.Errorf("%q, %d left", s, c.Left())
	}
}

func TestLengthsOfBothWidths(t *testing.T) {
	for text, want := range map[string]struct {
		n, off uint64
		wide   bool
	}{
		"\x05\x00\x00\x00\x07\x00\x00\x00":                                                 {5, 7, false},
		"\xff\xff\xff\xff\x05\x00\x00\x00\x00\x00\x00\x00\x07\x00\x00\x00\x01\x00\x00\x00": {5, 7 | 1<<32, true},
	} {
		c := Cursor{Data: []byte(text)}
		n, wide := c.Length()
		if off := c.Offset(wide); n != want.n || wide != want.wide || off != want.off || c.Bad || c.Left() > 0 {
			t.Errorf("%q: %d, %v, %#x", text, n, wide, off)
		}
	}
}

// Whatever is read past the end: zero, and bad for good.
func TestEndIsNotPassed(t *testing.T) {
	reads := map[string]func(*Cursor) uint64{
		"u16":  func(c *Cursor) uint64 { return uint64(c.U16()) },
		"u32":  func(c *Cursor) uint64 { return uint64(c.U32()) },
		"u64":  func(c *Cursor) uint64 { return c.U64() },
		"uleb": func(c *Cursor) uint64 { c.U8(); return c.ULEB() },
		"text": func(c *Cursor) uint64 { return uint64(len(c.Text(9))) },
		"take": func(c *Cursor) uint64 { return uint64(len(c.Take(math.MaxUint64))) },
	}
	for name, read := range reads {
		c := Cursor{Data: []byte{0x81}}
		if v := read(&c); v != 0 && name != "uleb" || !c.Bad || c.U8() != 0 || c.Text(9) != nil {
			t.Errorf("%s reads %d, bad %v", name, v, c.Bad)
		}
	}
	if c := (Cursor{Data: []byte("name\x00")}); c.Text(3) != nil || !c.Bad {
		t.Error("a text of 4 bytes is taken as one of 3")
	}
	long := Cursor{Data: []byte("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01")}
	if long.ULEB(); !long.Bad {
		t.Error("a number of eleven bytes is taken")
	}
}
