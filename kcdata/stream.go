package kcdata

import (
	"io"
	"slices"
)

// readLimited returns begin and, behind it, at most limit bytes of r, a stream that began at
// off in the file. With an error it returns the bytes before the error. It takes memory as
// bytes come, so that a size on the wire takes none: guess, the size that the stream should
// have, must be no more than the reader can spare.
func readLimited(begin []byte, r io.Reader, off int, limit, guess int64) ([]byte, error) {
	limit = max(limit, 0)
	b, err := readGuessed(begin, io.LimitReader(r, limit+1), min(guess, limit)+1)
	n := len(b) - len(begin)
	switch {
	case int64(n) > limit:
		return b[:len(begin)+int(limit)], badf(off, ErrTooLarge, "stream of more than %d bytes", limit)
	case err == io.ErrUnexpectedEOF:
		return b, badf(off, ErrTruncated, "stream ends after %d plain bytes", n)
	case err != nil:
		return b, badf(off, ErrBadStream, "after %d plain bytes: %v", n, err)
	}
	return b, nil
}

// readGuessed is io.ReadAll with begin in front. If guess, in bytes, is right, no byte is copied and
// no memory touched twice: for a large stream that takes as long as unpacking it.
func readGuessed(begin []byte, r io.Reader, guess int64) ([]byte, error) {
	b := append(make([]byte, 0, int64(len(begin))+max(guess, leastRead)), begin...)
	for {
		if cap(b)-len(b) < leastRead {
			b = slices.Grow(b, max(len(b), leastRead))
		}
		n, err := r.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if err == io.EOF {
			return b, nil
		} else if err != nil {
			return b, err
		}
	}
}

// leastRead is the least room for one read, bytes.
const leastRead = 512
