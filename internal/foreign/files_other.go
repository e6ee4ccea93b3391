//go:build !linux

package foreign

import (
	"errors"
	"io"
	"time"
)

// Files reads nothing here: only Linux has other processes' files to offer, and
// the means to leave one that hangs. Every call says errors.ErrUnsupported.
type Files struct{}

// New makes one.
func New(Options) *Files { return &Files{} }

// Close does nothing.
func (f *Files) Close() {}

// RetryLate does nothing.
func (f *Files) RetryLate(time.Time) {}

// LoadFrom fails.
func (f *Files) LoadFrom(w Where, _ func(r io.ReaderAt, size int64) (any, error)) (any, error) {
	return nil, at("open", w, errors.ErrUnsupported)
}

// Stat fails.
func (f *Files) Stat(w Where) (Stat, error) {
	return Stat{}, at("open", w, errors.ErrUnsupported)
}
