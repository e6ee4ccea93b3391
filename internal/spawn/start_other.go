//go:build !linux || (!amd64 && !arm64)

package spawn

import (
	"context"
	"errors"
	"io"
	"os"
	"time"
)

// Limit is how long a start takes at most. A test on a busy machine sets a longer one.
var Limit = time.Second

// ErrHeld answers where a process was made and did not begin in time.
var ErrHeld = errors.New("a helper process was started and does not begin")

// Child is a process that has begun.
type Child struct {
	Process *os.Process
	Conn    *os.File
}

// End does nothing.
func (c *Child) End() {}

// Reap does nothing.
func (c *Child) Reap() {}

// Held is nil.
func Held() error { return nil }

// Start fails: it knows amd64 and arm64.
func Start(context.Context, time.Duration, []string, ...*os.File) (*Child, error) {
	return nil, errors.ErrUnsupported
}

// Hello does nothing.
func Hello(io.Writer) error { return nil }
