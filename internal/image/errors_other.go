//go:build !linux

package image

import (
	"errors"
	"io/fs"

	"stackshot/internal/foreign"
)

// IsTimeout: nothing hangs, for nothing is read.
func IsTimeout(error) bool { return false }

func isAbsent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, foreign.ErrOther)
}
