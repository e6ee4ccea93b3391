package kcdata

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

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

	// A file is given memory beforehand for as much as it says that it unpacks to, if that is
	// not more than this many times its bytes. Snapshots pack 5 to 30 times.
	usualRatio = 32
)

// Unwrap takes data out of its envelope, which its magic tells, and returns the plain buffer.
// It returns plain data as it is. The error is ErrTooLarge if the buffer has more than limit
// bytes or, beyond the first few MiB, more than 1,032 times the bytes of data. Other errors:
// ErrTruncated, ErrBadMagic, ErrBadSize, ErrBadStream; all in a *FormatError. With an error
// plain is what could be unpacked until then; nil if that is nothing. Unwrap does not check
// the content: NewReader and Items do.
func Unwrap(data []byte, limit int64) (plain []byte, env Envelope, err error) {
	if len(data) < 4 {
		return nil, EnvelopeNone, badf(0, ErrTruncated, "%d bytes", len(data))
	}
	magic := binary.LittleEndian.Uint32(data)
	packed := min(limit, freeUnpack+maxRatio*int64(len(data)))
	switch {
	case magic == zstdMagic:
		plain, err = unwrapZstd(data, packed)
		return plain, EnvelopeZstd, err
	case Type(magic) == MagicCompressed:
		plain, err = unwrapCompressed(data, packed)
		return plain, EnvelopeZlib, err
	case !Type(magic).IsMagic():
		return nil, EnvelopeNone, badf(0, ErrBadMagic, "magic %#x", magic)
	case int64(len(data)) > limit:
		return data[:max(limit, 0)], EnvelopeNone, badf(0, ErrTooLarge, "%d bytes, limit %d", len(data), limit)
	}
	return data, EnvelopeNone, nil
}

func unwrapZstd(data []byte, limit int64) ([]byte, error) {
	// The frame chooses the window, and the decoder takes that much memory. So it may
	// be as large as the unpacked data may be, but at least what zstd -19 uses.
	window := max(zstdUsualWindow, min(zstdMaxWindow, limit))
	r, err := zstd.NewReader(bytes.NewReader(data),
		zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(uint64(window)))
	if err != nil {
		return nil, badf(0, ErrBadStream, "zstd frame: %v", err)
	}
	defer r.Close()
	b, err := readLimited(nil, r, 0, limit, min(plainGuess(data), usualRatio*int64(len(data))))
	if len(b) == 0 && err != nil {
		return nil, err
	}
	return b, err
}

// envelopeHeader is what precedes a compressed stream.
type envelopeHeader struct {
	algorithm, compressed, plain uint64
	found                        int    // bit i: the i-th of these numbers was found
	inner                        []byte // begin marker of the inner buffer
	stream                       int    // where the stream begins
}

// unwrapCompressed unpacks Apple's compressed buffer. If the end of the stream or the end
// marker is missing, the file was cut, and it returns what the rest holds.
func unwrapCompressed(data []byte, limit int64) ([]byte, error) {
	h, err := parseEnvelope(data)
	if err != nil {
		return nil, err
	}
	if limit < 2*headerSize || h.plain > uint64(limit-2*headerSize) {
		h.plain, err = uint64(max(limit-2*headerSize, 0)), badf(h.stream, ErrTooLarge, "stream of %d plain bytes, limit %d", h.plain, limit)
	}
	rest := uint64(len(data) - h.stream)
	cut := h.compressed > rest || rest-h.compressed < headerSize
	end := h.stream + int(min(h.compressed, rest))
	if !cut && err == nil {
		if t := header(data[end:]).typ; t != BufferEnd {
			return nil, badf(end, ErrBadStream, "type %#x where the end marker should be", uint32(t))
		}
	}
	plain, bad := inflate(data[h.stream:end], h)
	switch {
	case err != nil:
	case cut:
		err = badf(h.stream, ErrTruncated, "stream of %d bytes and end marker, %d left", h.compressed, rest)
	default:
		err = bad
	}
	if len(plain) == 0 {
		return nil, cmp.Or(err, bad)
	}
	if err == nil {
		plain = append(plain, make([]byte, padOf(len(plain))+headerSize)...)
		binary.LittleEndian.PutUint32(plain[len(plain)-headerSize:], uint32(BufferEnd))
	}
	return plain, err
}

// inflate returns the inner begin marker and the unpacked stream; nil if the stream does not
// even begin.
func inflate(stream []byte, h envelopeHeader) ([]byte, error) {
	if h.algorithm == algorithmNone {
		if h.plain != h.compressed {
			return nil, badf(h.stream, ErrBadSize, "%d stored bytes are said to be %d", h.compressed, h.plain)
		}
		return append(slices.Clone(h.inner), stream...), nil
	}
	if h.plain/maxDeflate > h.compressed {
		return nil, badf(h.stream, ErrBadSize, "%d bytes cannot hold %d", h.compressed, h.plain)
	}
	src := bytes.NewReader(stream)
	z, err := zlib.NewReader(src)
	if err != nil {
		return nil, badf(h.stream, ErrBadStream, "zlib header: %v", err)
	}
	b, err := readLimited(h.inner, z, h.stream, int64(h.plain), min(int64(h.plain), usualRatio*int64(len(stream))))
	n := len(b) - len(h.inner)
	if err == nil && (uint64(n) != h.plain || src.Len() != 0) {
		err = badf(h.stream, ErrBadStream, "%d plain bytes, %d promised; %d bytes left over", n, h.plain, src.Len())
	}
	return b, err
}

// parseEnvelope reads the items up to the begin marker of the inner buffer.
func parseEnvelope(data []byte) (h envelopeHeader, err error) {
	for off := 0; ; {
		if len(data)-off < headerSize {
			return h, badf(off, ErrTruncated, "%d bytes left, no inner begin marker", len(data)-off)
		}
		hd := header(data[off:])
		if hd.size > uint64(len(data)-off-headerSize) {
			return h, badf(off, ErrTruncated, "item %v of %d bytes, %d left", hd.typ, hd.size, len(data)-off-headerSize)
		}
		next := off + headerSize + int(hd.size)
		if off > 0 && hd.typ.IsMagic() {
			h.inner, h.stream = data[off:next], next
			return h, h.check(off, hd)
		}
		h.note(hd, data[off+headerSize:next])
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
