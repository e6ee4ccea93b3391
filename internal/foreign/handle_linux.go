package foreign

import (
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"stackshot/internal/procfs"
)

// handle holds one file at a time for a helper, by descriptors of this process (local)
// or of another one (process). Any request may hang.
type handle interface {
	// do carries out a request; buf is what opRead fills. Errors are unix.Errno, and of
	// a process procfs.ErrTimeout or ErrGone.
	do(r request, buf []byte) (answer, error)
	close()
	// mark makes the mark by which other runs learn that this handle hangs.
	mark() *mark
}

// request is one call of a handle. Most calls have few of the fields, and the others
// cost time as JSON. Paths are []byte, since they need not be UTF-8.
type request struct {
	Op         op
	Root, Path []byte `json:",omitempty"` // opLook, opExpand
	NoFollow   bool   `json:",omitzero"`  // opLook: Path itself may not be a symbolic link
	Guarded    bool   `json:",omitzero"`  // opLook: no symbolic link may be on the way
	Off        int64  `json:",omitzero"`  // opRead: where in the file, bytes
	Len        int    `json:",omitzero"`  // opRead of a process: bytes
}

type op uint8

const (
	opLook   op = iota + 1 // find a file by O_PATH, which does nothing to it; ELOOP: a link, though Guarded
	opExpand               // replace the first symbolic link of a path by its target
	opFSType               // statfs of the file
	opOpen                 // open for reading the file that opLook found, whatever has its name by now
	opRead                 // read what opOpen opened
	opClose                // close the file
)

// answer is what a request gives.
type answer struct {
	Errno  unix.Errno `json:",omitzero"` // of a process; 0: none
	Found  found      `json:",omitzero"` // of opLook
	Path   []byte     `json:",omitzero"` // of opExpand
	FSType uint32     `json:",omitzero"` // of opFSType: f_type
	Read   int        `json:",omitzero"` // of opRead: bytes; 0 at the end of the file
}

// found is what fstat says of a file.
type found struct {
	Mode uint32
	Stat Stat
}

// local is a handle of this process.
type local struct {
	path  int // O_PATH descriptor of the file that opLook found; -1: none
	fd    int // descriptor for reading; -1: none
	slots slots
}

func newLocal(s slots) *local { return &local{path: -1, fd: -1, slots: s} }

func (l *local) mark() *mark { return &mark{file: l.slots.open(), pid: os.Getpid(), own: true} }

func (l *local) do(r request, buf []byte) (a answer, err error) {
	switch r.Op {
	case opLook:
		a.Found, err = l.look(string(r.Root), string(r.Path), r.NoFollow, r.Guarded)
	case opExpand:
		a.Path, err = expand(string(r.Root), string(r.Path))
	case opFSType:
		var fs unix.Statfs_t
		err = unix.Fstatfs(l.path, &fs)
		a.FSType = uint32(fs.Type)
	case opOpen:
		err = l.open()
	case opRead: // on this thread: an os.File may prefer the poller
		a.Read, err = procfs.Retry(func() (int, error) { return unix.Pread(l.fd, buf, r.Off) })
	case opClose:
		l.close()
	default:
		err = unix.EINVAL
	}
	return a, err
}

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

func (l *local) open() (err error) {
	l.fd, err = procfs.Retry(func() (int, error) {
		// O_NONBLOCK: do not wait for the holder of a lease.
		return unix.Open("/proc/thread-self/fd/"+strconv.Itoa(l.path), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
	})
	return err
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
	const tries = 16 // EAGAIN: somebody renamed or mounted something meanwhile
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

// expand reads no link but the first, so it goes only where look has been.
func expand(root, file string) ([]byte, error) {
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
			return nil, err
		case !path.IsAbs(to):
			to = path.Join(done, to)
		}
		return []byte(path.Join(to, rest)), nil
	}
	return nil, unix.EAGAIN // look found a link, which is gone by now
}

func readLink(root, file string) (string, error) {
	fd, err := openPath(root, file, true, true)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	b := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(fd, "", b)
	if err == unix.ENOENT { // Linux's answer for an O_PATH descriptor of what is no link
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
