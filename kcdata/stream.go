package kcdata

import (
	"bytes"
	"io"
)

// readLimited returns begin and, behind it, at most limit bytes of r, a stream that began at
// off in the file. With an error it returns the bytes before the error. It takes memory as
// bytes come, so that a size on the wire takes none.
func readLimited(begin []byte, r io.Reader, off int, limit int64) ([]byte, error) {
	limit = max(limit, 0)
	b, err := io.ReadAll(io.MultiReader(bytes.NewReader(begin), io.LimitReader(r, limit+1)))
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
