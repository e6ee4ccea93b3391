//go:build !linux

package foreign

import (
	"errors"
	"io"
	"os"
	"time"
)

// Files reads nothing here: only Linux has other processes' files to offer, and
// the means to leave one that hangs. Every call says errors.ErrUnsupported.
type Files struct{}

// New makes one.
func New(Options) *Files { return &Files{} }

// Close does nothing.
func (f *Files) Close() {}

// Serve fails.
func Serve(io.ReadWriter, *os.File) error { return errors.ErrUnsupported }

// Rest does nothing.
func (f *Files) Rest() {}

// Forgive does nothing.
func (f *Files) Forgive(time.Time) {}

// Hanging is 0.
func (f *Files) Hanging() int { return 0 }

// Load fails.
func (f *Files) Load(path string, load func(r io.ReaderAt, size int64) (any, error)) (any, error) {
	return f.LoadFrom(Where{Path: path}, load)
}

// LoadFrom fails.
func (f *Files) LoadFrom(w Where, _ func(r io.ReaderAt, size int64) (any, error)) (any, error) {
	return nil, at("open", w, errors.ErrUnsupported)
}

// Stat fails.
func (f *Files) Stat(w Where) (Stat, error) {
	return Stat{}, at("open", w, errors.ErrUnsupported)
}
