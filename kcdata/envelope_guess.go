package kcdata

import "encoding/binary"

// plainGuess is how many bytes a zstd frame of this package unpacks to, or a little more: it
// has no size in front, but blocks of zstdBlock bytes. Of a frame by another program it is
// anything (format: RFC 8878, 3.1.1).
func plainGuess(frame []byte) (n int64) {
	const descriptor = 4 // behind the magic
	if len(frame) <= descriptor {
		return 0
	}
	d := frame[descriptor]
	at := descriptor + 1 + [4]int{0, 1, 2, 4}[d&3] + [4]int{0, 2, 4, 8}[d>>6] // the dictionary's id, the content's size
	if single := d & (1 << 5); single == 0 {
		at++ // the window
	} else if d>>6 == 0 {
		at++ // a size of one byte
	}
	for at+3 <= len(frame) {
		b := uint32(binary.LittleEndian.Uint16(frame[at:])) | uint32(frame[at+2])<<16
		last, kind, size := b&1, b>>1&3, int(b>>3)
		if at += 3 + size; kind == 1 { // one byte, repeated
			at += 1 - size
		}
		if n += zstdBlock; last == 1 {
			break
		}
	}
	return n
}
