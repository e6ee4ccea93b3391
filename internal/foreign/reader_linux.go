package foreign

import (
	"io"

	"golang.org/x/sys/unix"

	"stackshot/internal/procfs"
)

// Tables are searched a few bytes at a time, and each request of another process costs as much
// as reading many pages. So a small read takes the whole block around it, which is kept.
const (
	block      = 16 << 10 // bytes
	smallRead  = 4 << 10  // the largest that takes a block
	mostBlocks = 64       // that are kept
)

// reader is what a callback reads the file by, on one goroutine. When the caller has given up,
// reads fail, so that a late callback ends.
type reader struct {
	in     *attempt
	blocks map[int64][]byte // by number; the last of a file is shorter
}

// ReadAt reads until p is full or the file ends.
func (r *reader) ReadAt(p []byte, off int64) (n int, err error) {
	if off < 0 {
		return 0, unix.EINVAL
	}
	if len(p) <= smallRead {
		n = r.near(p, off)
	}
	more, err := r.read(p[n:], off+int64(n))
	return n + more, err
}

// near reads as much of p as blocks have. What it cannot read, for whatever reason, is left to
// read: an error may be of bytes that nobody asked for.
func (r *reader) near(p []byte, off int64) (n int) {
	for n < len(p) {
		at := off + int64(n)
		b := r.block(at / block)
		if at %= block; at >= int64(len(b)) {
			break
		}
		n += copy(p[n:], b[at:])
	}
	return n
}

func (r *reader) block(number int64) []byte {
	if b, kept := r.blocks[number]; kept && !r.in.late.Load() {
		return b
	}
	b := make([]byte, block)
	n, err := r.read(b, number*block)
	if err != nil && err != io.EOF {
		return nil
	}
	if r.blocks == nil || len(r.blocks) == mostBlocks {
		r.blocks = make(map[int64][]byte, mostBlocks)
	}
	r.blocks[number] = b[:n]
	return b[:n]
}

func (r *reader) read(p []byte, off int64) (n int, err error) {
	for n < len(p) {
		if r.in.late.Load() {
			return n, procfs.ErrTimeout
		}
		got, err := r.in.ask(request{Op: opRead, Off: off + int64(n)}, p[n:])
		if err != nil {
			return n, err
		}
		if got.Read == 0 {
			return n, io.EOF
		}
		n += got.Read
	}
	return n, nil
}
