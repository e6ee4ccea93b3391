// Package lockfile has the files by which processes of this program keep out of each other's
// way, in directories where others may write too.
package lockfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrHeld says that somebody has the lock.
var ErrHeld = errors.New("locked")

// Open opens a lock file, or makes it with this mode and group (-1: ours). name is looked up in the
// directory dir; path is what errors call it. It waits for nobody who has a lease on the file,
// follows no link, and takes no file that has another name too: the holder's name is written
// into it.
func Open(dir int, name, path string, mode uint32, gid int) (*os.File, error) {
	const flags = unix.O_RDWR | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC
	fd, err := unix.Openat(dir, name, flags, 0)
	for range 2 { // another process may make it between our two steps
		if !errors.Is(err, unix.ENOENT) {
			break
		}
		if fd, err = unix.Openat(dir, name, flags|unix.O_CREAT|unix.O_EXCL, mode); err == nil {
			unix.Fchown(fd, -1, gid)
			unix.Fchmod(fd, mode) // whatever the umask made of it
		} else if errors.Is(err, unix.EEXIST) {
			fd, err = unix.Openat(dir, name, flags, 0)
		}
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	f := os.NewFile(uintptr(fd), path)
	var st unix.Stat_t
	if err = unix.Fstat(fd, &st); err == nil && (st.Mode&unix.S_IFMT != unix.S_IFREG || st.Nlink != 1) {
		err = errors.New("not a regular file of one name")
	}
	if err != nil {
		f.Close()
		return nil, &fs.PathError{Op: "lock", Path: path, Err: err}
	}
	return f, nil
}

// Lock takes an open-file-description lock of the whole file (fcntl F_OFD_SETLK): it ends with the
// file, however the holder ends. It waits for nobody. Errors: ErrHeld.
func Lock(f *os.File) error { return lock(f, unix.F_WRLCK, 0, 0) }

// lock sets or ends the lock of length bytes from start on; 0: of all from there.
func lock(f *os.File, kind int16, start, length int64) error {
	err := unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: kind, Start: start, Len: length})
	switch {
	case errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES):
		return ErrHeld
	case err != nil:
		return fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	return nil
}

// Text is what the holder wrote into the file: 512 bytes at most.
func Text(f *os.File) string {
	var b [512]byte
	n, _ := f.ReadAt(b[:], 0)
	return strings.TrimSpace(string(b[:n]))
}

// Write replaces what stands in the file.
func Write(f *os.File, text string) error {
	_, err := f.WriteAt([]byte(text), 0)
	return errors.Join(err, f.Truncate(int64(len(text))))
}
