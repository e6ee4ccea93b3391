package snapshot

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"stackshot/internal/lockfile"
)

// lockPath is the lock file that all captures of this machine use. If there is a
// directory of this name without ".lock", they use the file "lock" in it instead. By
// that directory an administrator lets a group that is not root take part
// (docs/security.md).
const lockPath = "/run/stackshot.lock"

// ErrNoLock says that this process may not use the machine's lock. Such a capture
// is made all the same, and its file says so.
var ErrNoLock = errors.New("captures at the same time are not kept apart")

// TryLock says where a capture of this process would take the machine's lock, and
// opens it as a capture does; nobody is waited for. Errors: ErrNoLock.
func TryLock() (path string, err error) {
	f, err := openLock(lockPath)
	if err != nil {
		return "", err
	}
	return f.Name(), f.Close()
}

// openLock opens the lock, or makes it. Errors: ErrNoLock.
func openLock(path string) (*os.File, error) {
	f, why := openShared(strings.TrimSuffix(path, ".lock"))
	if f != nil {
		return f, nil
	}
	f, err := lockfile.Open(unix.AT_FDCWD, path, path, 0o600, -1)
	switch {
	case err == nil:
		return f, nil
	case why != nil:
		return nil, fmt.Errorf("%w: %w; %w", ErrNoLock, why, err)
	}
	return nil, fmt.Errorf("%w: %w", ErrNoLock, err)
}

// openShared opens the lock in dir. (nil, nil): there is no such directory. One
// that root does not own, or that everybody may write to, is no meeting place:
// whoever likes could hold up captures there.
func openShared(dir string) (*os.File, error) {
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
		return nil, nil
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: dir, Err: err}
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, &fs.PathError{Op: "stat", Path: dir, Err: err}
	}
	if st.Uid != 0 || st.Mode&0o002 != 0 {
		return nil, fmt.Errorf("%s: owned by uid %d, mode %#o: want root's, and not everybody's to write", dir, st.Uid, st.Mode&0o7777)
	}
	return lockfile.Open(fd, "lock", dir+"/lock", 0o660, int(st.Gid))
}
