package kcdata

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
)

// Envelope is the form in which a buffer is stored.
type Envelope uint8

// EnvelopeNone is the plain buffer. EnvelopeZlib is Apple's compressed buffer, which Apple's
// decoder reads. EnvelopeZstd is a zstd frame around the plain buffer.
const (
	EnvelopeNone Envelope = iota
	EnvelopeZlib
	EnvelopeZstd
)

func (e Envelope) String() string {
	if names := [...]string{"none", "zlib", "zstd"}; int(e) < len(names) {
		return names[e]
	}
	return fmt.Sprintf("envelope %d", uint8(e))
}

// Names and values of the items that precede a compressed stream.
const (
	descAlgorithm  = "kcd_c_type"
	descCompressed = "kcd_c_totalout"
	descPlain      = "kcd_c_totalin"

	algorithmNone = 0
	algorithmZlib = 1
)

const (
	zstdMagic       = 0xFD2FB528
	zstdMaxWindow   = 128 << 20 // as the zstd command without --long
	zstdUsualWindow = 8 << 20
	maxDeflate      = 1032 // deflate cannot expand more than this

	// No snapshot packs better than this, not even the kept stacks of thousands of
	// similar threads, which are mostly zeros. A file that does was made to fill the
	// memory of its reader: one page can hold a gigabyte.
	maxRatio   = maxDeflate
	freeUnpack = 4 << 20 // bytes that any file may unpack to

	// A file is given memory beforehand for as much as its size lets expect, if that is
	// not more than this many times its bytes. Snapshots pack 5 to 30 times.
	usualRatio = 32

	maxEnvelopeHead = 64 << 10 // bytes in front of a compressed stream; ours are 224
)

// File is a buffer as it was stored.
type File struct {
	Plain    []byte // from the begin marker to the end marker, or as far as it could be read; nil: nothing could
	Envelope Envelope
	Size     int64  // bytes of the envelope: where the file ends, or reading did
	Follows  string // what stands behind the end and was not read, in words; "": nothing
}

// Read reads one file from r and takes the buffer out of its envelope, which its magic tells. It
// ends at the end marker, or behind what the envelope has there, and does not read on, since what follows
// may have no end: Follows says that there is something. To know that it waits for one byte more, or
// r's end; it may take some 200 KiB. size is how many bytes r should have, 0 if that is not known. It is
// not believed: a wrong one costs at most 128 MiB of address space.
//
// The error is ErrTooLarge if the buffer has more than limit bytes or, beyond the first few MiB,
// more than 1,032 times the bytes that r gave for it, at whatever point. Other errors: ErrTruncated,
// ErrBadMagic, ErrBadSize, ErrBadStream; all in a *FormatError; and those of r, as they are. With an
// error Plain is what could be unpacked until then. Read goes from item to item and checks no more of
// the content: NewReader and Items do, and they say if the end marker is missing, but for zeros in its
// place, which are ErrTruncated here.
func Read(r io.Reader, size, limit int64) (f File, err error) {
	s := newSource(r)
	over := -1
	b, _ := s.Peek(4)
	var magic uint32
	if len(b) == 4 {
		magic = binary.LittleEndian.Uint32(b)
	}
	switch {
	case len(b) == 0:
		err = badf(0, ErrTruncated, "the file is empty")
	case len(b) < 4:
		err = badf(0, ErrTruncated, "%d bytes", len(b))
	case magic == zstdMagic:
		f.Envelope = EnvelopeZstd
		f.Plain, over, err = s.unwrapZstd(size, limit)
	case Type(magic) == MagicCompressed:
		f.Envelope = EnvelopeZlib
		f.Plain, over, err = s.unwrapCompressed(size, limit)
	case !Type(magic).IsMagic():
		err = badf(0, ErrBadMagic, "magic %#x", magic)
	default:
		f.Plain, over, err = s.untilEnd(nil, s, 0, limit, size)
	}
	if len(f.Plain) == 0 {
		f.Plain = nil
	}
	f.Size = s.taken()
	if s.in.err != nil {
		return f, s.in.err
	}
	plain := f.Envelope == EnvelopeNone
	if plain {
		f.Size = int64(len(f.Plain)) // what was read beyond it is not used
	}
	switch n := size - f.Size; {
	case over < 0 || err != nil:
	case over > 0 && !plain:
		f.Follows = fmt.Sprintf("bytes behind the end marker, from offset %#x of what it unpacks to, are not read", len(f.Plain))
	case over == 0 && !s.goesOn():
	case n > 0:
		f.Follows = fmt.Sprintf("%d bytes behind its end, from offset %#x, are not read", n, f.Size)
	default:
		f.Follows = fmt.Sprintf("bytes behind its end, from offset %#x, are not read", f.Size)
	}
	return f, err
}

// Unwrap is Read of bytes in memory.
func Unwrap(data []byte, limit int64) (plain []byte, env Envelope, err error) {
	f, err := Read(bytes.NewReader(data), int64(len(data)), limit)
	return f.Plain, f.Envelope, err
}

// unwrapZstd unpacks a zstd frame. over is that of untilEnd.
func (s source) unwrapZstd(size, limit int64) (plain []byte, over int, err error) {
	var h zstd.Header
	head, _ := s.Peek(zstd.HeaderMaxSize)
	if err := h.Decode(head); err != nil {
		return nil, -1, badStream(0, 0, err)
	}
	// The frame chooses the window, and the decoder takes that much memory. So it may
	// be as large as the unpacked data may be, but at least what zstd -19 uses.
	window := int64(zstdMaxWindow)
	if size > 0 {
		window = max(zstdUsualWindow, min(window, limit, freeUnpack+maxRatio*size))
	}
	frame := &zstdFrame{src: s, left: h.HeaderSize}
	if h.HasCheckSum {
		frame.sum = 4
	}
	in := &io.LimitedReader{R: frame, N: math.MaxInt64}
	z, err := zstd.NewReader(in,
		zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(uint64(window)))
	if err != nil {
		return nil, -1, badf(0, ErrBadStream, "zstd frame: %v", err)
	}
	defer z.Close()
	b, over, err := s.untilEnd(nil, z, 0, limit, usualRatio*size)
	if err != nil || over != 0 {
		return b, over, err
	}
	// The frame is whole if all that comes is an empty block and the checksum.
	in.N = 16
	n, err := z.Read(make([]byte, 1))
	switch {
	case err == io.EOF && n == 0:
		return b, 0, nil
	case n > 0 || in.N == 0:
		return b, 1, nil
	}
	return b, 0, badStream(0, len(b), err)
}

// envelopeHeader is what precedes a compressed stream.
type envelopeHeader struct {
	algorithm, compressed, plain uint64
	found                        int    // bit i: the i-th of these numbers was found
	inner                        []byte // begin marker of the inner buffer
	stream                       int    // where the stream begins
}

// unwrapCompressed unpacks Apple's compressed buffer. If the end of the stream or the end
// marker is missing, the file was cut, and it returns what the rest holds. over is that of untilEnd.
func (s source) unwrapCompressed(size, limit int64) (plain []byte, over int, err error) {
	h, err := parseEnvelope(s)
	if err != nil {
		return nil, -1, err
	}
	if limit < 2*headerSize || h.plain > uint64(limit-2*headerSize) {
		h.plain, err = uint64(max(limit-2*headerSize, 0)), badf(h.stream, ErrTooLarge, "stream of %d plain bytes, limit %d", h.plain, limit)
	}
	in := &io.LimitedReader{R: s, N: int64(min(h.compressed, math.MaxInt64))}
	stream := bufio.NewReader(in)
	plain, over, bad := s.inflate(stream, h, size)
	if over >= 0 || err != nil {
		return plain, 1, err // an end marker within the stream
	}
	var marker [headerSize]byte
	n := 0
	if in.N == 0 && stream.Buffered() == 0 {
		n, _ = io.ReadFull(s, marker[:])
	}
	switch left := int64(stream.Buffered()) + in.N; {
	case n == headerSize && header(marker[:]).typ != BufferEnd:
		bad = badf(h.stream+int(h.compressed), ErrBadStream, "type %#x where the end marker should be", uint32(header(marker[:]).typ))
	case n < headerSize && !s.goesOn():
		bad = badf(h.stream, ErrTruncated, "stream of %d bytes and end marker, %d left", h.compressed, s.taken()-int64(h.stream))
	case bad == nil && (uint64(len(plain)-len(h.inner)) != h.plain || left > 0):
		bad = badf(h.stream, ErrBadStream, "%d plain bytes, %d promised; %d bytes left over", len(plain)-len(h.inner), h.plain, left)
	}
	if bad == nil {
		plain = append(plain, make([]byte, padOf(len(plain))+headerSize)...)
		binary.LittleEndian.PutUint32(plain[len(plain)-headerSize:], uint32(BufferEnd))
		over = 0
	}
	return plain, over, bad
}

// inflate returns the inner begin marker and the unpacked stream; nil if the stream does not
// even begin. over is that of untilEnd.
func (s source) inflate(stream *bufio.Reader, h envelopeHeader, size int64) (plain []byte, over int, err error) {
	if h.algorithm == algorithmNone {
		if h.plain != h.compressed {
			return nil, -1, badf(h.stream, ErrBadSize, "%d stored bytes are said to be %d", h.compressed, h.plain)
		}
		return s.untilEnd(h.inner, stream, h.stream, int64(h.plain), size)
	}
	if h.plain/maxDeflate > h.compressed {
		return nil, -1, badf(h.stream, ErrBadSize, "%d bytes cannot hold %d", h.compressed, h.plain)
	}
	z, err := zlib.NewReader(stream)
	if err != nil {
		return nil, -1, badf(h.stream, ErrBadStream, "zlib header: %v", err)
	}
	return s.untilEnd(h.inner, z, h.stream, int64(h.plain), min(int64(h.plain), usualRatio*size))
}

// parseEnvelope reads the items up to the begin marker of the inner buffer.
func parseEnvelope(r io.Reader) (h envelopeHeader, err error) {
	for off := 0; ; {
		b := make([]byte, headerSize)
		if n, err := io.ReadFull(r, b); err != nil {
			return h, badf(off, ErrTruncated, "%d bytes left, no inner begin marker", n)
		}
		hd := header(b)
		if uint64(off)+hd.size > maxEnvelopeHead {
			return h, badf(off, ErrTooLarge, "item %v of %d bytes, no inner begin marker in %d", hd.typ, hd.size, maxEnvelopeHead)
		}
		b = append(b, make([]byte, hd.size)...)
		if n, err := io.ReadFull(r, b[headerSize:]); err != nil {
			return h, badf(off, ErrTruncated, "item %v of %d bytes, %d left", hd.typ, hd.size, n)
		}
		next := off + len(b)
		if off > 0 && hd.typ.IsMagic() {
			h.inner, h.stream = b, next
			return h, h.check(off, hd)
		}
		h.note(hd, b[headerSize:])
		off = next
	}
}

// note takes the three numbers from their descs and ignores all other items.
func (h *envelopeHeader) note(hd itemHeader, raw []byte) {
	n, ok := payloadSize(hd.typ, len(raw), hd.flags)
	if !ok || hd.typ != TypeUint64Desc {
		return
	}
	name, v, ok := Item{Type: hd.typ, Data: raw[:n]}.Desc()
	if !ok {
		return
	}
	for i, n := range []struct {
		name string
		dst  *uint64
	}{{descAlgorithm, &h.algorithm}, {descCompressed, &h.compressed}, {descPlain, &h.plain}} {
		if n.name == name {
			*n.dst = v.(uint64)
			h.found |= 1 << i
		}
	}
}

func (h *envelopeHeader) check(off int, inner itemHeader) error {
	switch {
	case inner.typ == MagicCompressed:
		return badf(off, ErrBadMagic, "compressed buffer inside a compressed buffer")
	case inner.size != 0:
		return badf(off, ErrBadSize, "inner begin marker of %d bytes", inner.size)
	case h.found != 7:
		return badf(off, ErrBadStream, "algorithm or sizes of the stream are missing")
	case h.algorithm != algorithmZlib && h.algorithm != algorithmNone:
		return badf(off, ErrBadStream, "unknown compression %d", h.algorithm)
	}
	return nil
}
