package kcdata

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

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
	Codings  []string // "gzip" or "base64", which stood around the envelope, outermost first
	Size     int64    // bytes of the envelope, or of its codings: where the file ends, or reading did
	Follows  string   // what stands behind the end and was not read, in words; "": nothing
}

// Read reads one file from r and takes the buffer out of its codings and its envelope, which the first
// bytes tell. It ends at the end marker, or behind what the envelope has there, and does not read on, since
// what follows may have no end: Follows says that there is something. To know that it waits for one byte more,
// or r's end; it may take some 200 KiB. size is how many bytes r should have, 0 if that is not known. It is
// not believed: a wrong one costs at most 128 MiB of address space.
//
// The error is ErrTooLarge if the buffer has more than limit bytes or, beyond the first few MiB,
// more than 1,032 times the bytes that r gave for it, at whatever point. Other errors: ErrTruncated,
// ErrBadMagic, which says what the file is if its first bytes tell, ErrBadSize, ErrBadStream,
// ErrCompression; all in a *FormatError, whose offsets count from the envelope's begin; and those of r, as they
// are. With an error Plain is what could be unpacked until then. Read goes from item to item and checks no more
// of the content: NewReader and Items do, and they say if the end marker is missing, but for zeros in its
// place, which are ErrTruncated here.
func Read(r io.Reader, size, limit int64) (f File, err error) {
	file := newSource(r)
	s, err := file.decoded()
	f.Codings = s.codings()
	over := -1
	if err == nil {
		over, err = f.unwrap(s, size, limit)
	}
	if len(f.Plain) == 0 && err == nil {
		err = badf(0, ErrTruncated, "it unpacks to nothing")
	}
	if len(f.Plain) == 0 {
		f.Plain = nil
	}
	f.Size = file.taken()
	if file.in.err != nil {
		return f, file.in.err
	}
	if f.Codings == nil && f.Envelope == EnvelopeNone {
		f.Size = int64(len(f.Plain)) // what was read beyond it is not used
	}
	if over >= 0 {
		f.Follows, err = f.follows(s, over, size)
	}
	if f.Codings != nil { // whose ends were read
		if f.Size = file.taken(); file.in.err != nil {
			return f, file.in.err
		}
	}
	in := f.Codings
	if f.Envelope == EnvelopeZstd && errors.Is(err, ErrBadMagic) {
		in = append(in[:len(in):len(in)], "zstd")
	}
	if bad, ok := errors.AsType[*FormatError](err); ok && in != nil {
		bad.What = fmt.Sprintf("in %s: %s", strings.Join(in, ", in "), bad.What)
	}
	return f, err
}

// unwrap reads the envelope. over is that of untilEnd.
func (f *File) unwrap(s source, size, limit int64) (over int, err error) {
	head, bad := s.Peek(4)
	switch {
	case len(head) < 4 && s.around != nil && bad != io.EOF:
		return -1, badStream(0, len(head), bad)
	case len(head) == 0:
		return -1, badf(0, ErrTruncated, "the file is empty")
	case len(head) < 4:
		return -1, badf(0, ErrTruncated, "%d bytes", len(head))
	}
	switch magic := binary.LittleEndian.Uint32(head); {
	case magic == zstdMagic:
		f.Envelope = EnvelopeZstd
		f.Plain, over, err = s.unwrapZstd(size, limit)
	case Type(magic) == MagicCompressed:
		f.Envelope = EnvelopeZlib
		f.Plain, over, err = s.unwrapCompressed(size, limit)
	case !Type(magic).IsMagic():
		head, _ = s.Peek(kindHead)
		return -1, badf(0, ErrBadMagic, "%s", kindOf(head))
	default:
		f.Plain, over, err = s.untilEnd(nil, s, 0, limit, size)
	}
	return over, err
}

// follows says what File.Follows does. over is how many bytes of s were read beyond the end marker. The
// error says that a coding is damaged behind it.
func (f *File) follows(s source, over int, size int64) (string, error) {
	if over > 0 && f.Envelope != EnvelopeNone {
		return fmt.Sprintf("bytes behind the end marker, from offset %#x of what it unpacks to, are not read", len(f.Plain)), nil
	}
	at, off, next := &s, int64(len(f.Plain)), f.Plain[len(f.Plain):len(f.Plain)+over]
	if over == 0 {
		var err error
		if at, err = s.beyond(); at == nil {
			return "", err
		}
		off = at.taken()
		next, _ = at.Peek(at.Buffered())
	}
	out := fmt.Sprintf("bytes behind its end, from offset %#x", off)
	if at.around != nil {
		out += " in the " + at.coding
	} else if n := size - off; n > 0 {
		out = fmt.Sprintf("%d %s", n, out)
	}
	out += ", are not read"
	if beginsFile(next) {
		out += ": another file begins there"
	}
	return out, nil
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
	return b, -1, badStream(0, len(b), err)
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
	in := &io.LimitedReader{R: s, N: int64(min(h.compressed, math.MaxInt64))}
	stream := bufio.NewReader(in)
	plain, over, bad := s.inflate(stream, h, size, limit-2*headerSize)
	switch {
	case over >= 0 && h.algorithm == algorithmNone && in.N > 0 && !s.goesOn(): // that of the envelope
		return plain, -1, badf(h.stream, ErrBadSize, "stream of %d bytes and end marker, %d left", h.compressed, s.taken()-int64(h.stream))
	case over >= 0:
		return plain, 1, nil // an end marker within the stream
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
	case bad == nil && left > 0:
		bad = badf(h.stream, ErrBadStream, "%d bytes left over behind %d plain ones", left, len(plain)-len(h.inner))
	case bad == nil && uint64(len(plain)-len(h.inner)) != h.plain:
		bad = badf(h.stream, ErrBadSize, "%d plain bytes, %d promised", len(plain)-len(h.inner), h.plain)
	}
	if bad == nil || errors.Is(bad, ErrBadSize) { // a wrong promise, and all is there
		plain = append(plain, make([]byte, padOf(len(plain))+headerSize)...)
		binary.LittleEndian.PutUint32(plain[len(plain)-headerSize:], uint32(BufferEnd))
	}
	if bad == nil {
		over = 0
	}
	return plain, over, bad
}

// inflate returns the inner begin marker and the unpacked stream; nil if the stream does not
// even begin. over is that of untilEnd.
func (s source) inflate(stream *bufio.Reader, h envelopeHeader, size, limit int64) (plain []byte, over int, err error) {
	if h.algorithm == algorithmNone {
		return s.untilEnd(h.inner, stream, h.stream, limit, size)
	}
	z, err := zlib.NewReader(stream)
	if err != nil {
		return nil, -1, badf(h.stream, ErrBadStream, "zlib header: %v", err)
	}
	return s.untilEnd(h.inner, z, h.stream, limit, usualRatio*size)
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
		return badf(off, ErrCompression, "%s is %d", descAlgorithm, h.algorithm)
	}
	return nil
}
