package vmcore

import (
	"fmt"
	"io"
)

// source is the file of a dump.
type source struct {
	r    io.ReaderAt
	size uint64 // bytes
	path string
}

// damaged makes an error about what lies at an offset.
func (s *source) damaged(off uint64, format string, args ...any) error {
	return fmt.Errorf("%s: offset %#x: %s: %w", s.path, off, fmt.Sprintf(format, args...), ErrDamaged)
}

// holds says whether size bytes at off lie in the file.
func (s *source) holds(off, size uint64) bool { return off <= s.size && size <= s.size-off }

// read fills p from off on; what names it in the error.
func (s *source) read(p []byte, off uint64, what string) error {
	if !s.holds(off, uint64(len(p))) {
		return s.damaged(off, "%s of %d bytes: the file ends at %#x", what, len(p), s.size)
	}
	n, err := s.r.ReadAt(p, int64(off))
	if n == len(p) {
		return nil
	}
	return fmt.Errorf("%s: offset %#x: %s of %d bytes: %w: %w", s.path, off+uint64(n), what, len(p), ErrDamaged, err)
}

// atAddress makes an error about a physical address.
func (s *source) atAddress(pa uint64, err error) error {
	return fmt.Errorf("%s: physical address %#x: %w", s.path, pa, err)
}

// runs hands pages to the function that a pass is for, and counts them.
type runs struct {
	Tally
	page uint64 // bytes
	fn   func(pa uint64, run []byte) error
}

func (r *runs) emit(pa uint64, run []byte) error {
	r.Pages += uint64(len(run)) / r.page
	return r.fn(pa, run)
}

// lose counts bytes that should be in the file and could not be read.
func (r *runs) lose(bytes uint64, err error) {
	r.Damaged += bytes / r.page
	if r.First == nil {
		r.First = err
	}
}
