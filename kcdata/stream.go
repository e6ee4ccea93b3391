package kcdata

import (
	"bytes"
	"io"
)

// readLimited returns begin and behind it all of r, a stream that began at off of the file:
// at most limit bytes of it. With an error it returns what came before. It takes memory as
// bytes come, so that a promised size takes none.
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
