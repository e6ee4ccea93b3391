package kcdata

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"slices"
)

const (
	leastRead = 512       // the least room for one read, bytes
	mostRead  = 128 << 10 // the most bytes of one: how far reading goes beyond an end marker
	mostGuess = 64 << 20  // bytes that are believed to come before they have come
)

// source is where a file is read from. Behind the file it takes no more than bufferSize bytes.
type source struct {
	*bufio.Reader
	in     *tally
	coding string  // that was taken off
	around *source // what had the coding; nil: this is the file
}

const bufferSize = 64 << 10

// tally counts what a reader gave, and keeps the error that ended it.
type tally struct {
	io.Reader
	n    int64
	err  error
	file *source // that the reader unpacks; nil: the reader is the file
}

func (t *tally) Read(p []byte) (int, error) {
	n, err := t.Reader.Read(p)
	t.n += int64(n)
	if t.file != nil && t.n > t.file.allows() {
		err = ErrTooLarge // what is in a coding may unpack to nothing, and take long for it
	}
	if err != io.EOF {
		t.err = err
	}
	return n, err
}

func newSource(r io.Reader) source {
	in := &tally{Reader: r}
	return source{Reader: bufio.NewReaderSize(in, bufferSize), in: in}
}

// within is s without a coding, which r takes off.
func (s source) within(coding string, r io.Reader) source {
	inner, file := newSource(r), s.file()
	inner.coding, inner.around, inner.in.file = coding, &s, &file
	return inner
}

// file is the outermost source.
func (s source) file() source {
	for s.around != nil {
		s = *s.around
	}
	return s
}

// taken is how many bytes of the source were used.
func (s source) taken() int64 { return s.in.n - int64(s.Buffered()) }

// allows is how many bytes the file that s is may unpack to, by what was read of it.
func (s source) allows() int64 { return freeUnpack + maxRatio*s.taken() }

// goesOn reports whether there is another byte.
func (s source) goesOn() bool {
	_, err := s.Peek(1)
	return err == nil
}

// untilEnd returns begin and, behind it, the items of r up to the end marker. over is how many
// bytes were read beyond that; -1: r, which began at off in the file, ended before, or there is an
// error, and b is what came until then. It takes memory as bytes come, so that a size on the wire takes
// none. r may unpack to limit bytes, and to no more than what the source gave until then allows.
func (s source) untilEnd(begin []byte, r io.Reader, off int, limit, guess int64) (b []byte, over int, err error) {
	limit = min(max(limit, 0), math.MaxInt64/2)
	b = append(make([]byte, 0, len(begin)+int(max(min(guess, limit+1, mostGuess), leastRead))), begin...)
	for at := 0; ; { // of the next item
		if cap(b)-len(b) < leastRead {
			b = slices.Grow(b, max(len(b), leastRead))
		}
		n, err := r.Read(b[len(b):min(cap(b), len(b)+mostRead, len(begin)+int(limit)+1)])
		b = b[:len(b)+n]
		most := len(begin) + int(min(limit, s.file().allows()))
		for at+headerSize <= len(b) && at < most {
			h := header(b[at:])
			end := at + headerSize
			switch {
			case at == 0 && !h.typ.IsMagic():
				return nil, -1, badf(0, ErrBadMagic, "%s", kindOf(b[:min(len(b), kindHead)]))
			case h == itemHeader{}: // a hole in a file, or what was never written
				return b[:at], -1, badf(at, ErrTruncated, "zeros, no end marker")
			case h.typ == BufferEnd && end <= most:
				return b[:end], len(b) - end, nil
			}
			at = end + int(h.size)
		}
		switch {
		case len(b) > most:
			return b[:most], -1, badf(off, ErrTooLarge, "stream of more than %d bytes", most-len(begin))
		case err == io.EOF:
			return b, -1, nil
		case err != nil:
			return b, -1, badStream(off, len(b)-len(begin), err)
		}
	}
}

// badStream says that a compressed stream, which began at off in the file, ends badly after n plain bytes.
func badStream(off, n int, err error) error {
	if err == ErrTooLarge {
		return badf(off, ErrTooLarge, "coding of more than the file may unpack to")
	}
	if _, text := errors.AsType[notBase64](err); text {
		return badf(off, ErrTruncated, "%v, after %d plain bytes", err, n)
	}
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return badf(off, ErrTruncated, "stream ends after %d plain bytes", n)
	}
	return badf(off, ErrBadStream, "after %d plain bytes: %v", n, err)
}

// maxEmptyBlocks bounds the empty blocks of a frame: a hole in a file has endless many.
const maxEmptyBlocks = 1 << 16

// zstdFrame gives the bytes of one zstd frame and no more: a decoder would go on with a frame
// behind it (format: RFC 8878, 3.1.1).
type zstdFrame struct {
	src   source
	left  int  // bytes until the next block begins
	sum   int  // bytes of the checksum behind the last block
	last  bool // no block follows
	empty int  // empty blocks so far
}

func (f *zstdFrame) Read(p []byte) (int, error) {
	for f.left == 0 {
		if f.last {
			return 0, io.EOF
		}
		b, err := f.src.Peek(3)
		if err != nil {
			return 0, err
		}
		h := uint32(binary.LittleEndian.Uint16(b)) | uint32(b[2])<<16
		size := int(h >> 3)
		if size == 0 {
			f.empty++
		}
		if f.empty > maxEmptyBlocks {
			return 0, io.ErrUnexpectedEOF
		}
		if h>>1&3 == 1 { // one byte, repeated
			size = 1
		}
		if f.left, f.last = len(b)+size, h&1 == 1; f.last {
			f.left += f.sum
		}
	}
	n, err := f.src.Read(p[:min(len(p), f.left)])
	f.left -= n
	return n, err
}
