package stacks

import (
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"stackshot/kcdata"
)

// codeBlock is how much of a file's code is read at once, where no table covers it.
const codeBlock = 16 << 10

// codeReader reads an ELF file: while its tables are made from the open file; then,
// for a few bytes of code now and then, from whatever process maps the file at
// the time, a block at a time. Whole code is not kept: of a browser that is 200 MiB.
type codeReader struct {
	size int64
	file io.ReaderAt                // set while the tables are made, by the one goroutine that makes them
	from atomic.Pointer[codeSource] // by Process.table
}

// codeSource is a mapping of the file, and on whose account it is read.
type codeSource struct {
	p *Process
	m *kcdata.Mapping
}

// ReadAt reads the code, as io.ReaderAt says.
func (c *codeReader) ReadAt(b []byte, off int64) (n int, err error) {
	if c.file != nil {
		return c.file.ReadAt(b, off)
	}
	for n < len(b) && off < c.size && err == nil {
		var block []byte
		if block, err = c.block(off / codeBlock); err == nil {
			at := off % codeBlock
			if at >= int64(len(block)) {
				break
			}
			k := copy(b[n:], block[at:])
			n, off = n+k, off+int64(k)
		}
	}
	if n < len(b) && err == nil {
		err = io.EOF
	}
	return n, err
}

// block reads a block; the last one of a file is shorter.
func (c *codeReader) block(i int64) ([]byte, error) {
	f := c.from.Load()
	if f == nil {
		return nil, fmt.Errorf("code at %#x: nobody maps it", i*codeBlock)
	}
	u := f.p.u
	if u.Left <= 0 {
		f.p.miss(f.m, errSpent)
		return nil, fmt.Errorf("code at %#x: not read: %w", i*codeBlock, errSpent)
	}
	began := time.Now()
	v, err := u.Images.Load(f.p.proc, f.m, fmt.Sprintf("code %d", i), func(r io.ReaderAt, size int64) (any, error) {
		b := make(keptCode, max(0, min(codeBlock, size-i*codeBlock)))
		_, err := io.ReadFull(io.NewSectionReader(r, i*codeBlock, int64(len(b))), b)
		return b, err
	})
	u.Left -= time.Since(began)
	if err != nil {
		f.p.miss(f.m, err)
		return nil, err
	}
	return v.(keptCode), nil
}

type keptCode []byte

// Cost is for the cache.
func (k keptCode) Cost() int64 { return int64(len(k)) }
