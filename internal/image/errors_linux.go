package image

import (
	"errors"
	"io"
	"io/fs"

	"golang.org/x/sys/unix"

	"stackshot/internal/foreign"
	"stackshot/internal/procfs"
)

// IsTimeout: the file hangs.
func IsTimeout(err error) bool { return errors.Is(err, procfs.ErrTimeout) }

// IsTransient: another time the file may be read: it was late, or those who read
// were hanging or had died.
func IsTransient(err error) bool {
	return IsTimeout(err) || errors.Is(err, procfs.ErrExhausted) || errors.Is(err, foreign.ErrGone)
}

// isFilesFault: reading ended where the file does, or was asked for what no file
// has; again it would be the same.
func isFilesFault(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EOVERFLOW)
}

// isAbsent: the place holds no such file, or another.
func isAbsent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) || errors.Is(err, foreign.ErrOther)
}
