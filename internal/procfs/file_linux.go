package procfs

import (
	"cmp"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// Op is how a File is read.
type Op uint8

// The ways to read.
const (
	OpRead  Op = iota // the contents
	OpLink            // the target of a symbolic link
	OpList            // a directory's entries, as getdents64 gives them
	OpInode           // the number of the inode, in decimal digits
)

// DefaultMax is the size cap of a File that sets none, bytes.
const DefaultMax = 64 << 10

// ErrForbidden is the error of files that are never read.
var ErrForbidden = errors.New("never read by design")

// File is one file to read and, after the read, its result. A caller that reads many
// directories keeps the same Files, since Data's memory is used again.
type File struct {
	// Set by the caller.
	Name string // below the directory
	Op   Op
	Max  int // size cap, bytes; 0: DefaultMax

	// Set by the read.
	Data      []byte // cut at Max
	Truncated bool   // there was more than Max
	Err       error  // *fs.PathError, *TimeoutError, ErrExhausted, ErrClosed; then Data is empty

	fn func(buf []byte) ([]byte, error) // of Readers.Do: called instead of reading a file
}

func (f *File) max() int { return cmp.Or(f.Max, DefaultMax) }

// fail gives every file the same error.
func fail(files []File, err error) {
	for i := range files {
		files[i].Data, files[i].Truncated, files[i].Err = files[i].Data[:0], false, err
	}
}

// readDirect reads on the calling thread, without a time limit.
func readDirect(dir string, files []File) {
	fd, err := openDir(dir)
	if err != nil {
		fail(files, err)
		return
	}
	defer unix.Close(fd)
	for i := range files {
		f := &files[i]
		f.Data, f.Truncated, f.Err = f.read(dir, fd, f.Data[:0])
	}
}

// openDir opens a directory in which files are read. The descriptor stands for the task
// itself: if that ends and another task gets its number, reads below the descriptor fail
// (ESRCH or ENOENT) instead of giving the other task's files.
func openDir(dir string) (int, error) {
	fd, err := Retry(func() (int, error) {
		return unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return -1, &fs.PathError{Op: "open", Path: dir, Err: err}
	}
	return fd, nil
}

// read appends the file's contents to buf. On an error it returns buf unchanged.
func (f *File) read(dir string, dirfd int, buf []byte) (out []byte, truncated bool, err error) {
	if path.Base(f.Name) == "environ" {
		return buf, false, &fs.PathError{Op: "read", Path: dir + "/" + f.Name, Err: ErrForbidden}
	}
	switch f.Op {
	case OpLink:
		out, truncated, err = readLink(dirfd, f.Name, buf, f.max())
	case OpInode:
		out, err = inode(dirfd, f.Name, buf)
	case OpList:
		out, truncated, err = f.readOpen(dirfd, unix.O_DIRECTORY, buf, unix.Getdents)
	default:
		out, truncated, err = f.readOpen(dirfd, 0, buf, unix.Read)
	}
	if err != nil {
		return buf, false, &fs.PathError{Op: "read", Path: dir + "/" + f.Name, Err: err}
	}
	return out, truncated, nil
}

// readOpen appends what call reads from the opened file, at most max bytes.
func (f *File) readOpen(dirfd, flags int, buf []byte, call func(int, []byte) (int, error)) ([]byte, bool, error) {
	fd, err := Retry(func() (int, error) {
		return unix.Openat(dirfd, f.Name, unix.O_RDONLY|unix.O_CLOEXEC|flags, 0)
	})
	if err != nil {
		return nil, false, err
	}
	defer unix.Close(fd)
	// One byte more than max tells a file of that size from a longer one. It is at
	// least a page, since getdents and some /proc files refuse a small buffer.
	start, limit := len(buf), len(buf)+max(f.max()+1, 4096)
	for len(buf) < limit {
		buf = slices.Grow(buf, min(4096, limit-len(buf)))
		n, err := Retry(func() (int, error) { return call(fd, buf[len(buf):min(cap(buf), limit)]) })
		if err == unix.EINVAL && f.Op == OpList && len(buf) > start {
			return buf, true, nil // no whole entry fits into the rest of the buffer
		}
		if err != nil {
			return nil, false, err
		}
		if n == 0 {
			break
		}
		buf = buf[:len(buf)+n]
	}
	if f.Op != OpList && len(buf)-start > f.max() {
		return buf[:start+f.max()], true, nil
	}
	return buf, len(buf) >= limit, nil
}

// inode appends the number of a file's inode. Nothing is opened, and no server is asked: the
// file system may be one that hangs.
func inode(dirfd int, name string, buf []byte) ([]byte, error) {
	var st unix.Statx_t
	_, err := Retry(func() (int, error) {
		return 0, unix.Statx(dirfd, name, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT|unix.AT_STATX_DONT_SYNC, unix.STATX_INO, &st)
	})
	if err != nil {
		return nil, err
	}
	return strconv.AppendUint(buf, st.Ino, 10), nil
}

func readLink(dirfd int, name string, buf []byte, limit int) ([]byte, bool, error) {
	start := len(buf)
	limit = min(limit, 64<<10)
	buf = slices.Grow(buf, limit)
	n, err := Retry(func() (int, error) { return unix.Readlinkat(dirfd, name, buf[start:start+limit]) })
	if err != nil {
		return nil, false, err
	}
	return buf[:start+n], n == limit, nil
}

// Retry repeats a system call while it fails with EINTR. Go's scheduler sends signals to
// its threads.
func Retry(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if err != unix.EINTR {
			return n, err
		}
	}
}
