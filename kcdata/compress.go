package kcdata

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
)

// Compress writes plain, one whole buffer, to w in the envelope e. It leaves out the bytes
// behind the end marker. Errors: those of NewReader and Items, those of w.
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

// NewCompressor is the streaming form of Compress. The caller writes one whole plain buffer,
// from begin marker to end marker, to it in pieces. Close completes the envelope; it does
// not close w. EnvelopeZlib has its sizes in front of the stream. If w can seek, Close
// writes them there; otherwise the compressed stream is held in memory until Close. w must
// not be a file that was opened with O_APPEND.
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

// zstdBlock is how many plain bytes a block of a zstd frame holds. A frame that was cut gives
// back only whole blocks, and a block of the usual 128 KiB is most of an ordinary file.
// Blocks of this size make the frame 1 to 3 % longer.
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

// zlibWriter cuts the begin and end markers off the plain buffer, because the stream holds
// only what is between them.
type zlibWriter struct {
	dst    io.Writer
	seeker io.Seeker    // of dst; nil: the stream goes to held first
	start  int64        // where the envelope begins in dst
	held   bytes.Buffer // the stream, if dst cannot seek

	head []byte // of the plain buffer, until it has 16 bytes
	tail []byte // the last bytes, at most 16: perhaps the end marker
	z    *zlib.Writer
	in   uint64 // plain bytes given to z
}

func newZlibWriter(w io.Writer) *zlibWriter {
	z := &zlibWriter{dst: w}
	if s, ok := w.(io.Seeker); ok {
		// A pipe has this method, too, but it fails.
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
		z.head, p = append(z.head, p[:k]...), p[k:]
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

// begin begins the stream. It is called when the begin marker is complete.
func (z *zlibWriter) begin() error {
	if h := header(z.head); !h.typ.IsMagic() || h.typ == MagicCompressed || h.size != 0 {
		return badf(0, ErrBadMagic, "magic %#x, marker of %d bytes", uint32(h.typ), h.size)
	}
	if z.seeker == nil {
		z.z = zlib.NewWriter(&z.held)
		return nil
	}
	z.z = zlib.NewWriter(z.dst)
	return z.writeEnvelope(0) // Close writes it again, with the sizes
}

// body compresses all but the last 16 bytes seen so far.
func (z *zlibWriter) body(p []byte) error {
	if n := len(z.tail) + len(p) - headerSize; n > 0 {
		fromTail := min(len(z.tail), n)
		for _, b := range [...][]byte{z.tail[:fromTail], p[:n-fromTail]} {
			if _, err := z.z.Write(b); err != nil {
				return err
			}
		}
		z.in += uint64(n)
		z.tail, p = append(z.tail[:0], z.tail[fromTail:]...), p[n-fromTail:]
	}
	z.tail = append(z.tail, p...)
	return nil
}

// Close writes what is still held, the sizes and the end marker.
func (z *zlibWriter) Close() error {
	if len(z.tail) < headerSize || header(z.tail).typ != BufferEnd {
		return badf(len(z.head)+int(z.in), ErrTruncated, "no end marker in what was compressed")
	}
	if err := z.z.Close(); err != nil {
		return err
	}
	if err := z.sizes(); err != nil {
		return err
	}
	var end [headerSize]byte
	binary.LittleEndian.PutUint32(end[:], uint32(BufferEnd))
	_, err := z.dst.Write(end[:])
	return err
}

// sizes writes the envelope with its sizes: in front of the held stream or, if the stream is
// in dst already, over the first envelope.
func (z *zlibWriter) sizes() error {
	if z.seeker == nil {
		if err := z.writeEnvelope(z.held.Len()); err != nil {
			return err
		}
		_, err := z.held.WriteTo(z.dst)
		return err
	}
	end, err := z.seeker.Seek(0, io.SeekCurrent)
	if err != nil {
		return err
	}
	if _, err := z.seeker.Seek(z.start, io.SeekStart); err != nil {
		return err
	}
	if err := z.writeEnvelope(int(end-z.start) - envelopeSize); err != nil {
		return err
	}
	_, err = z.seeker.Seek(end, io.SeekStart)
	return err
}

// envelopeSize is the size in bytes of what stands in front of the stream: begin marker,
// three descs, begin marker of the plain buffer.
const envelopeSize = headerSize + 3*(headerSize+descName+8+8) + headerSize

// writeEnvelope writes what stands in front of a stream of compressed bytes.
func (z *zlibWriter) writeEnvelope(compressed int) error {
	w := NewWriter(make([]byte, envelopeSize))
	err := errors.Join(w.Begin(MagicCompressed), w.Uint64Desc(descAlgorithm, algorithmZlib),
		w.Uint64Desc(descCompressed, uint64(compressed)), w.Uint64Desc(descPlain, z.in))
	if err != nil || w.Len() != envelopeSize-headerSize {
		panic("kcdata: envelope does not have its size") // constant names and sizes
	}
	_, err = z.dst.Write(append(w.Written(), z.head...))
	return err
}
