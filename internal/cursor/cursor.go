// Package cursor reads little-endian data from untrusted sources.
package cursor

import (
	"bytes"
	"encoding/binary"
)

// Cursor reads Data from Pos on. It never reads past the end of Data: a read that would do so
// sets Bad, and from then on every read returns zero.
type Cursor struct {
	Data []byte
	Pos  int // at most len(Data)
	Bad  bool
}

// Left is the number of bytes that are left to read.
func (c *Cursor) Left() int { return len(c.Data) - c.Pos }

// Take returns the next n bytes, as a part of Data; nil if fewer are left.
func (c *Cursor) Take(n uint64) []byte {
	if c.Bad || n > uint64(c.Left()) {
		c.Bad = true
		return nil
	}
	b := c.Data[c.Pos : c.Pos+int(n)]
	c.Pos += int(n)
	return b
}

// U8 reads one byte.
func (c *Cursor) U8() uint8 {
	if b := c.Take(1); b != nil {
		return b[0]
	}
	return 0
}

// U16 reads two bytes.
func (c *Cursor) U16() uint16 {
	if b := c.Take(2); b != nil {
		return binary.LittleEndian.Uint16(b)
	}
	return 0
}

// U32 reads four bytes.
func (c *Cursor) U32() uint32 {
	if b := c.Take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

// U64 reads eight bytes.
func (c *Cursor) U64() uint64 {
	if b := c.Take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// Length reads the length in bytes of the unit that follows. wide says that offsets in the
// unit have 8 bytes, not 4 (DWARF 5, section 7.4).
func (c *Cursor) Length() (n uint64, wide bool) {
	if n = uint64(c.U32()); n == 0xffffffff {
		return c.U64(), true
	}
	return n, false
}

// Offset reads an offset of 8 bytes if wide, else of 4.
func (c *Cursor) Offset(wide bool) uint64 {
	if wide {
		return c.U64()
	}
	return uint64(c.U32())
}

// A LEB128 number of 64 bits has at most ten bytes.
const maxLEB = 10

// ULEB reads an unsigned LEB128 number (DWARF 5, section 7.6).
func (c *Cursor) ULEB() uint64 {
	var v uint64
	for i := range maxLEB {
		b := c.U8()
		v |= uint64(b&0x7f) << (7 * i)
		if b < 0x80 {
			return v
		}
	}
	c.Bad = true
	return 0
}

// SLEB reads a signed LEB128 number.
func (c *Cursor) SLEB() int64 {
	var v int64
	for i := range maxLEB {
		b := c.U8()
		v |= int64(b&0x7f) << (7 * i)
		if b < 0x80 {
			if b&0x40 != 0 && 7*(i+1) < 64 {
				v |= -1 << (7 * (i + 1))
			}
			return v
		}
	}
	c.Bad = true
	return 0
}

// Text reads up to a NUL and skips it. It returns the bytes before the NUL, as a part of Data.
// If there is none behind at most max bytes, it sets Bad and returns nil.
func (c *Cursor) Text(max int) []byte {
	n := -1
	if !c.Bad {
		n = bytes.IndexByte(c.Data[c.Pos:min(len(c.Data), c.Pos+max+1)], 0)
	}
	if n < 0 {
		c.Bad = true
		return nil
	}
	b := c.Data[c.Pos : c.Pos+n]
	c.Pos += n + 1
	return b
}
