package unwind

import "encoding/binary"

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
