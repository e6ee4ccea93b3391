package unwind

import "encoding/binary"

// cursor reads little-endian data and never past its end: bad says that it would
// have.
type cursor struct {
	data []byte
	pos  int
	bad  bool
}

func (c *cursor) left() int { return len(c.data) - c.pos }

func (c *cursor) take(n uint64) []byte {
	if c.bad || n > uint64(c.left()) {
		c.bad = true
		return nil
	}
	b := c.data[c.pos : c.pos+int(n)]
	c.pos += int(n)
	return b
}

func (c *cursor) u8() uint8 {
	if b := c.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (c *cursor) u16() uint16 {
	if b := c.take(2); b != nil {
		return binary.LittleEndian.Uint16(b)
	}
	return 0
}

func (c *cursor) u32() uint32 {
	if b := c.take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (c *cursor) u64() uint64 {
	if b := c.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// A LEB128 number of 64 bits has at most ten bytes.
const maxLEB = 10

func (c *cursor) uleb() uint64 {
	var v uint64
	for i := range maxLEB {
		b := c.u8()
		v |= uint64(b&0x7f) << (7 * i)
		if b < 0x80 {
			return v
		}
	}
	c.bad = true
	return 0
}

func (c *cursor) sleb() int64 {
	var v int64
	for i := range maxLEB {
		b := c.u8()
		v |= int64(b&0x7f) << (7 * i)
		if b < 0x80 {
			if b&0x40 != 0 && 7*(i+1) < 64 {
				v |= -1 << (7 * (i + 1))
			}
			return v
		}
	}
	c.bad = true
	return 0
}

// str reads a NUL-terminated string of at most most bytes.
func (c *cursor) str(most int) string {
	for i := c.pos; i < min(len(c.data), c.pos+most+1) && !c.bad; i++ {
		if c.data[i] == 0 {
			s := string(c.data[c.pos:i])
			c.pos = i + 1
			return s
		}
	}
	c.bad = true
	return ""
}

func appendULEB(b []byte, v uint64) []byte { return binary.AppendUvarint(b, v) }

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
