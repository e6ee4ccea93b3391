package foreign

import (
	"strconv"

	"golang.org/x/sys/unix"
)

// handle is what a helper has one file at a time by: a descriptor of this
// process (local) or of another one (process). Any call may hang. Errors are
// unix.Errno, and procfs.ErrTimeout or ErrGone of a process.
type handle interface {
	// look finds a file, as O_PATH, which does nothing to it.
	look(root, path string, noFollow bool) (found, error)
	// fsType is statfs's f_type of the file.
	fsType() (uint32, error)
	// open opens for reading what look found, whatever its name stands for
	// by now.
	open() error
	// pread reads what open opened; 0 at its end.
	pread(p []byte, off int64) (int, error)
	close()
}

// found is what fstat says.
type found struct {
	Mode uint32
	Stat Stat
}

// local is a handle of this process.
type local struct{ path, fd int }

func newLocal() *local { return &local{-1, -1} }

func (l *local) look(root, path string, noFollow bool) (found, error) {
	l.close()
	fd, err := openPath(root, path, noFollow)
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
	l.fd, err = retry(func() (int, error) {
		// O_NONBLOCK: not to wait for the holder of a lease.
		return unix.Open("/proc/thread-self/fd/"+strconv.Itoa(l.path), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
	})
	return err
}

// pread reads on the helper's own thread: an os.File may prefer the poller.
func (l *local) pread(p []byte, off int64) (int, error) {
	return retry(func() (int, error) { return unix.Pread(l.fd, p, off) })
}

func (l *local) close() {
	for _, fd := range []*int{&l.path, &l.fd} {
		if *fd >= 0 {
			unix.Close(*fd)
		}
		*fd = -1
	}
}

func openPath(root, path string, noFollow bool) (int, error) {
	flags := unix.O_PATH | unix.O_CLOEXEC
	if noFollow {
		flags |= unix.O_NOFOLLOW
	}
	if root == "" {
		return retry(func() (int, error) { return unix.Open(path, flags, 0) })
	}
	dir, err := retry(func() (int, error) {
		return unix.Open(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return -1, err
	}
	defer unix.Close(dir)
	how := unix.OpenHow{Flags: uint64(flags), Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS}
	const tries = 16 // EAGAIN: something was renamed or mounted meanwhile
	for range tries {
		fd, err := retry(func() (int, error) { return unix.Openat2(dir, path, &how) })
		if err != unix.EAGAIN {
			return fd, err
		}
	}
	return -1, unix.EAGAIN
}

func statOf(raw *unix.Stat_t) Stat {
	return Stat{
		DevMajor: unix.Major(uint64(raw.Dev)), DevMinor: unix.Minor(uint64(raw.Dev)), Inode: raw.Ino,
		Size: raw.Size, Mtime: raw.Mtim.Nano(), Ctime: raw.Ctim.Nano(), UID: raw.Uid,
	}
}

// retry repeats a call that a signal to this thread interrupted.
func retry(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if err != unix.EINTR {
			return n, err
		}
	}
}
