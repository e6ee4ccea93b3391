package kcdata

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
)

// Compress writes plain, one whole buffer, to w in the envelope e. Bytes behind
// the end marker are left out. Errors: those of NewReader and Items, those of w.
func Compress(w io.Writer, plain []byte, e Envelope) error {
	n, err := Check(plain)
	if err != nil {
		return err
	}
	c, err := NewCompressor(w, e)
	if err != nil {
		return err
	}
	if _, err := c.Write(plain[:n]); err != nil {
		return err
	}
	return c.Close()
}

// NewCompressor is the streaming form of Compress: one whole plain buffer, from
// begin marker to end marker, is written to it in pieces. Close completes the
// envelope; it does not close w. EnvelopeZlib keeps the sizes in front of the
// stream: if w can seek they are patched, else the compressed stream is held in
// memory until Close. A file opened with O_APPEND cannot be patched.
func NewCompressor(w io.Writer, e Envelope) (io.WriteCloser, error) {
	switch e {
	case EnvelopeNone:
		return plainWriter{w}, nil
	case EnvelopeZstd:
		return newZstdWriter(w)
	case EnvelopeZlib:
		return newZlibWriter(w), nil
	}
	return nil, fmt.Errorf("kcdata: no such %v", e)
}

type plainWriter struct{ io.Writer }

func (plainWriter) Close() error { return nil }

// zstdBlock is how many plain bytes a block of a zstd frame holds. Of a frame that was
// cut only whole blocks come out, and one of the usual size, 128 KiB, is most of an
// ordinary file; blocks of this size make it 1 to 3 % longer.
const zstdBlock = 32 << 10

type zstdWriter struct {
	z    *zstd.Encoder
	left int // plain bytes until the block ends
}

func newZstdWriter(w io.Writer) (*zstdWriter, error) {
	z, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1))
	return &zstdWriter{z, zstdBlock}, err
}

func (w *zstdWriter) Write(p []byte) (int, error) {
	for done := 0; ; {
		n, err := w.z.Write(p[done:min(len(p), done+w.left)])
		done, w.left = done+n, w.left-n
		if err != nil || w.left > 0 {
			return done, err
		}
		if err := w.z.Flush(); err != nil {
			return done, err
		}
		w.left = zstdBlock
	}
}

func (w *zstdWriter) Close() error { return w.z.Close() }

// zlibWriter cuts the begin and end markers off the plain buffer, since the
// stream holds only what is between them.
type zlibWriter struct {
	dst    io.Writer
	seeker io.Seeker // nil: the stream goes to held first
	start  int64     // where the envelope begins in dst
	held   bytes.Buffer

	head []byte // of the plain buffer, until it has 16 bytes
	tail []byte // the last bytes, at most 16: perhaps the end marker
	z    *zlib.Writer
	in   uint64 // plain bytes given to z
	out  countingWriter
}

type countingWriter struct {
	w io.Writer
	n uint64
}

func (c *countingWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += uint64(n)
	return n, err
}

func newZlibWriter(w io.Writer) *zlibWriter {
	z := &zlibWriter{dst: w}
	if s, ok := w.(io.Seeker); ok {
		// A pipe has the method too, and fails.
		if pos, err := s.Seek(0, io.SeekCurrent); err == nil {
			z.seeker, z.start = s, pos
		}
	}
	return z
}

func (z *zlibWriter) Write(p []byte) (int, error) {
	n := len(p)
	if z.z == nil {
		k := min(headerSize-len(z.head), len(p))
		z.head = append(z.head, p[:k]...)
		p = p[k:]
		if len(z.head) < headerSize {
			return n, nil
		}
		if err := z.begin(); err != nil {
			return 0, err
		}
	}
	if err := z.body(p); err != nil {
		return 0, err
	}
	return n, nil
}

// begin is called when the begin marker is complete.
func (z *zlibWriter) begin() error {
	if h := header(z.head); !h.typ.IsMagic() || h.typ == MagicCompressed || h.size != 0 {
		return badf(0, ErrBadMagic, "magic %#x, marker of %d bytes", uint32(h.typ), h.size)
	}
	z.out.w = &z.held
	if z.seeker != nil {
		if _, err := z.dst.Write(z.envelope()); err != nil {
			return err
		}
		z.out.w = z.dst
	}
	z.z = zlib.NewWriter(&z.out)
	return nil
}

// body compresses all but the last 16 bytes seen so far.
func (z *zlibWriter) body(p []byte) error {
	if len(z.tail)+len(p) <= headerSize {
		z.tail = append(z.tail, p...)
		return nil
	}
	fromTail := min(len(z.tail), len(z.tail)+len(p)-headerSize)
	if err := z.feed(z.tail[:fromTail]); err != nil {
		return err
	}
	z.tail = append(z.tail[:0], z.tail[fromTail:]...)
	fromP := len(z.tail) + len(p) - headerSize
	if err := z.feed(p[:fromP]); err != nil {
		return err
	}
	z.tail = append(z.tail, p[fromP:]...)
	return nil
}

func (z *zlibWriter) feed(p []byte) error {
	z.in += uint64(len(p))
	_, err := z.z.Write(p)
	return err
}

// Close writes what is still held, the sizes and the end marker.
func (z *zlibWriter) Close() error {
	if len(z.tail) < headerSize || header(z.tail).typ != BufferEnd {
		return badf(len(z.head)+int(z.in), ErrTruncated, "no end marker in what was compressed")
	}
	if err := z.z.Close(); err != nil {
		return err
	}
	if z.seeker == nil {
		if _, err := z.dst.Write(z.envelope()); err != nil {
			return err
		}
		if _, err := z.held.WriteTo(z.dst); err != nil {
			return err
		}
	} else if err := z.patch(); err != nil {
		return err
	}
	var end [headerSize]byte
	binary.LittleEndian.PutUint32(end[:], uint32(BufferEnd))
	_, err := z.dst.Write(end[:])
	return err
}

// patch writes the items in front again, now with the sizes.
func (z *zlibWriter) patch() error {
	if _, err := z.seeker.Seek(z.start, io.SeekStart); err != nil {
		return err
	}
	if _, err := z.dst.Write(z.envelope()); err != nil {
		return err
	}
	_, err := z.seeker.Seek(int64(z.out.n), io.SeekCurrent)
	return err
}

// envelope is the 224 bytes in front of the stream.
func (z *zlibWriter) envelope() []byte {
	const size = headerSize + 3*(headerSize+descName+8+8) + headerSize
	w := NewWriter(make([]byte, size))
	err := w.Begin(MagicCompressed)
	for _, d := range []struct {
		name string
		v    uint64
	}{{descAlgorithm, algorithmZlib}, {descCompressed, z.out.n}, {descPlain, z.in}} {
		if err == nil {
			err = w.Uint64Desc(d.name, d.v)
		}
	}
	if err != nil || w.Len() != size-headerSize {
		panic("kcdata: envelope does not have its size") // constant names and sizes
	}
	return append(w.Written(), z.head...)
}
