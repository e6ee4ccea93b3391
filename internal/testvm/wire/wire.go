// Package wire is what the first process of a guest and the host say to each
// other: one Job inside the initramfs, then frames from the guest.
//
// A frame, integers little-endian:
//
//	offset  size  what
//	0       4     magic 1e 53 56 4d
//	4       1     kind
//	5       4     n, length of the body
//	9       n     body
//	9+n     4     CRC-32 (IEEE) of kind, length and body
//
// There is no resynchronisation: the wire loses nothing, so a frame that is not
// one means that something else wrote to it, and the run is worth nothing.
package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// Kinds of frame.
const (
	Hello  = 'h' // body: the kernel's release; the guest is about to set up
	Note   = 'n' // body: one line about the set-up, for the log
	Output = 'o' // body: what the program wrote, to stdout or stderr
	File   = 'f' // body: name, NUL, content; a name again appends to its file
	Used   = 'u' // body: what the program took at most of memory, KiB, and how long it ran, ms, both decimal, a blank between them
	Exit   = 'x' // body: the exit code in decimal; the last frame
)

const (
	headLen = 9
	// MaxBody bounds a frame: what a reader allocates on the word of the guest.
	MaxBody = 1 << 20
)

var magic = [4]byte{0x1e, 'S', 'V', 'M'}

// ErrGarbled is a wire that carries something else than frames.
var ErrGarbled = errors.New("wire: not a frame")

// Frame is one message of the guest.
type Frame struct {
	Kind byte
	Body []byte
}

// Write sends one frame in one write, so that frames of several goroutines
// under one lock do not mix with the kernel's own writing.
func Write(w io.Writer, kind byte, body []byte) error {
	if len(body) > MaxBody {
		return fmt.Errorf("wire: frame %q of %d bytes, at most %d", kind, len(body), MaxBody)
	}
	b := make([]byte, 0, headLen+len(body)+4)
	b = append(b, magic[:]...)
	b = append(b, kind)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(body)))
	b = append(b, body...)
	b = binary.LittleEndian.AppendUint32(b, crc32.ChecksumIEEE(b[4:]))
	_, err := w.Write(b)
	return err
}

// Read takes one frame. The error is io.EOF between frames, ErrGarbled with the
// bytes that were read instead of one, or io.ErrUnexpectedEOF inside.
func Read(r io.Reader) (Frame, error) {
	var head [headLen]byte
	if n, err := io.ReadFull(r, head[:]); err != nil {
		if err == io.ErrUnexpectedEOF && [4]byte(head[:4]) != magic {
			return Frame{}, fmt.Errorf("%w: %q", ErrGarbled, head[:n])
		}
		return Frame{}, err
	}
	n := binary.LittleEndian.Uint32(head[5:])
	if [4]byte(head[:4]) != magic || n > MaxBody {
		return Frame{}, fmt.Errorf("%w: %q", ErrGarbled, head[:])
	}
	body := make([]byte, n+4)
	if _, err := io.ReadFull(r, body); err != nil {
		return Frame{}, io.ErrUnexpectedEOF
	}
	sum := crc32.Update(crc32.ChecksumIEEE(head[4:]), crc32.IEEETable, body[:n])
	if got := binary.LittleEndian.Uint32(body[n:]); got != sum {
		return Frame{}, fmt.Errorf("%w: kind %q, checksum %#x, want %#x", ErrGarbled, head[4], got, sum)
	}
	return Frame{Kind: head[4], Body: body[:n]}, nil
}
