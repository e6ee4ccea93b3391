package kcdata

import "io"

// readLimited appends all of r, a stream that began at off of the file, to b: at
// most limit bytes. With an error it gives what came before.
func readLimited(r io.Reader, off int, limit int64, b []byte) ([]byte, error) {
	was := len(b)
	b, err := drain(io.LimitReader(r, max(limit, 0)+1), b)
	n := len(b) - was
	switch {
	case int64(n) > limit:
		return b[:was+int(max(limit, 0))], badf(off, ErrTooLarge, "stream of more than %d bytes", limit)
	case err == io.ErrUnexpectedEOF:
		return b, badf(off, ErrTruncated, "stream ends after %d plain bytes", n)
	case err != nil:
		return b, badf(off, ErrBadStream, "after %d plain bytes: %v", n, err)
	}
	return b, nil
}

// drain appends all of r to b. It takes memory as bytes come, in pieces: a buffer
// that grows would leave behind as much garbage again.
func drain(r io.Reader, b []byte) ([]byte, error) {
	pieces, total := [][]byte{b}, len(b)
	for size := 64 << 10; ; size = min(2*size, 4<<20) {
		piece, err := fill(r, make([]byte, size))
		pieces, total = append(pieces, piece), total+len(piece)
		if err == nil {
			continue
		}
		out := make([]byte, 0, total)
		for i, p := range pieces {
			out, pieces[i] = append(out, p...), nil
		}
		if err == io.EOF {
			err = nil
		}
		return out, err
	}
}

// fill reads until b is full or r has an error, and gives what was read.
func fill(r io.Reader, b []byte) ([]byte, error) {
	for n := 0; ; {
		m, err := r.Read(b[n:])
		if n += m; err != nil || n == len(b) {
			return b[:n], err
		}
	}
}
