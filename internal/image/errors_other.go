//go:build !linux

package image

import (
	"errors"
	"io"
	"io/fs"

	"stackshot/internal/foreign"
)

// IsTimeout: nothing hangs, for nothing is read.
func IsTimeout(error) bool { return false }

// IsTransient: as IsTimeout.
func IsTransient(error) bool { return false }

func isFilesFault(err error) bool { return errors.Is(err, io.EOF) }

func isAbsent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, foreign.ErrOther)
}
