package procfs

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"time"
)

// Errors of timed reads. A timeout comes as *TimeoutError.
var (
	ErrTimeout   = errors.New("read hangs")
	ErrExhausted = errors.New("too many reads hang")
	ErrClosed    = errors.New("readers are closed")
)

// TimeoutError is the error of a read that was written off.
type TimeoutError struct {
	Path  string // "" for a Do
	Limit time.Duration
}

func (e *TimeoutError) Error() string {
	return fmt.Sprintf("%s: %v: no answer in %v", e.Path, ErrTimeout, e.Limit)
}

// Unwrap makes errors.Is(err, ErrTimeout) hold.
func (e *TimeoutError) Unwrap() error { return ErrTimeout }

// Gone reports whether err says that the task has ended.
func Gone(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) }
