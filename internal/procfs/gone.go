package procfs

import (
	"errors"
	"io/fs"
	"syscall"
)

// Gone reports whether err says that the task has ended.
func Gone(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) }
