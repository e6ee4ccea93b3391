package image

import (
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"

	"stackshot/internal/foreign"
	"stackshot/internal/procfs"
)

// IsTimeout: the file hangs, or so many do that none can be asked.
func IsTimeout(err error) bool { return errors.Is(err, procfs.ErrTimeout) }

// isAbsent: the place holds no such file, or another.
func isAbsent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) || errors.Is(err, foreign.ErrOther)
}
