package foreign

import (
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"stackshot/internal/procfs"
)

// handle is what a helper has one file at a time by: a descriptor of this
// process (local) or of another one (process). Any call may hang. Errors are
// unix.Errno, and procfs.ErrTimeout or ErrGone of a process.
type handle interface {
	// look finds a file, as O_PATH, which does nothing to it. guarded: ELOOP if
	// there is a symbolic link on the way.
	look(root, path string, noFollow, guarded bool) (found, error)
	// expand is the path with its first symbolic link replaced by what that says.
	expand(root, path string) (string, error)
	// fsType is statfs's f_type of the file.
	fsType() (uint32, error)
	// open opens for reading what look found, whatever its name stands for
	// by now.
	open() error
	// pread reads what open opened; 0 at its end.
	pread(p []byte, off int64) (int, error)
	close()
	// mark is how it is noted that this hand hangs.
	mark() *mark
}

// found is what fstat says.
type found struct {
	Mode uint32
	Stat Stat
}

// local is a handle of this process.
type local struct {
	path, fd int
	slots    slots
}

func newLocal(s slots) *local { return &local{-1, -1, s} }

func (l *local) mark() *mark { return &mark{file: l.slots.open(), pid: os.Getpid(), own: true} }

func (l *local) look(root, path string, noFollow, guarded bool) (found, error) {
	l.close()
	fd, err := openPath(root, path, noFollow, guarded)
	if err != nil {
		return found{}, err
	}
	l.path = fd
	var raw unix.Stat_t
	if err := unix.Fstat(fd, &raw); err != nil {
		return found{}, err
	}
	return found{raw.Mode, statOf(&raw)}, nil
}

func (l *local) fsType() (uint32, error) {
	var fs unix.Statfs_t
	err := unix.Fstatfs(l.path, &fs)
	return uint32(fs.Type), err
}

func (l *local) open() (err error) {
	l.fd, err = procfs.Retry(func() (int, error) {
		// O_NONBLOCK: not to wait for the holder of a lease.
		return unix.Open("/proc/thread-self/fd/"+strconv.Itoa(l.path), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
	})
	return err
}

// pread reads on the helper's own thread: an os.File may prefer the poller.
func (l *local) pread(p []byte, off int64) (int, error) {
	return procfs.Retry(func() (int, error) { return unix.Pread(l.fd, p, off) })
}

func (l *local) close() {
	for _, fd := range []*int{&l.path, &l.fd} {
		if *fd >= 0 {
			unix.Close(*fd)
		}
		*fd = -1
	}
}

func openPath(root, path string, noFollow, guarded bool) (int, error) {
	flags := unix.O_PATH | unix.O_CLOEXEC
	if noFollow {
		flags |= unix.O_NOFOLLOW
	}
	if root == "" && !guarded {
		return procfs.Retry(func() (int, error) { return unix.Open(path, flags, 0) })
	}
	how := unix.OpenHow{Flags: uint64(flags), Resolve: unix.RESOLVE_NO_MAGICLINKS}
	if guarded {
		how.Resolve |= unix.RESOLVE_NO_SYMLINKS
	}
	dir := unix.AT_FDCWD
	if root != "" {
		var err error
		if dir, err = openRoot(root); err != nil {
			return -1, err
		}
		defer unix.Close(dir)
		how.Resolve |= unix.RESOLVE_IN_ROOT
	}
	const tries = 16 // EAGAIN: something was renamed or mounted meanwhile
	for range tries {
		fd, err := procfs.Retry(func() (int, error) { return unix.Openat2(dir, path, &how) })
		if err != unix.EAGAIN {
			return fd, err
		}
	}
	return -1, unix.EAGAIN
}

func openRoot(root string) (int, error) {
	return procfs.Retry(func() (int, error) {
		return unix.Open(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	})
}

// expand goes no further than the first link, and so where look has been.
func (l *local) expand(root, file string) (string, error) {
	done, rest := "/", strings.TrimPrefix(path.Clean("/"+file), "/")
	for rest != "" {
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		to, err := readLink(root, path.Join(done, name))
		switch {
		case err == unix.EINVAL: // no link
			done = path.Join(done, name)
			continue
		case err != nil:
			return "", err
		case !path.IsAbs(to):
			to = path.Join(done, to)
		}
		return path.Join(to, rest), nil
	}
	return "", unix.EAGAIN // it was one a moment ago
}

func readLink(root, file string) (string, error) {
	fd, err := openPath(root, file, true, true)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	b := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(fd, "", b)
	if err == unix.ENOENT { // what Linux says of an O_PATH that is no link
		err = unix.EINVAL
	}
	return string(b[:max(n, 0)]), err
}

func statOf(raw *unix.Stat_t) Stat {
	return Stat{
		DevMajor: unix.Major(uint64(raw.Dev)), DevMinor: unix.Minor(uint64(raw.Dev)), Inode: raw.Ino,
		Size: raw.Size, Mtime: raw.Mtim.Nano(), Ctime: raw.Ctim.Nano(), UID: raw.Uid,
	}
}
