package foreign

import (
	"strconv"

	"golang.org/x/sys/unix"
)

// find opens w as O_PATH, which does nothing to the file, and asks whether it is
// what it has to be. On a helper.
func (f *Files) find(w Where) (fd int, st Stat, err error) {
	if fd, err = openPath(w); err != nil {
		return -1, Stat{}, at("open", w, err)
	}
	if st, err = f.examine(fd, w); err != nil {
		unix.Close(fd)
		return -1, Stat{}, at("open", w, err)
	}
	return fd, st, nil
}

// open opens for reading what find found: the same file, whatever its name
// stands for by now.
func (f *Files) open(w Where) (fd int, st Stat, err error) {
	path, st, err := f.find(w)
	if err != nil {
		return -1, Stat{}, err
	}
	defer unix.Close(path)
	fd, err = retry(func() (int, error) {
		// O_NONBLOCK: not to wait for the holder of a lease.
		return unix.Open("/proc/thread-self/fd/"+strconv.Itoa(path), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
	})
	if err != nil {
		return -1, Stat{}, at("open", w, err)
	}
	return fd, st, nil
}

func openPath(w Where) (int, error) {
	flags := unix.O_PATH | unix.O_CLOEXEC
	if w.NoFollow {
		flags |= unix.O_NOFOLLOW
	}
	if w.Root == "" {
		return retry(func() (int, error) { return unix.Open(w.Path, flags, 0) })
	}
	root, err := retry(func() (int, error) {
		return unix.Open(w.Root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return -1, err
	}
	defer unix.Close(root)
	how := unix.OpenHow{Flags: uint64(flags), Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS}
	const tries = 16 // EAGAIN: something was renamed or mounted meanwhile
	for range tries {
		fd, err := retry(func() (int, error) { return unix.Openat2(root, w.Path, &how) })
		if err != unix.EAGAIN {
			return fd, err
		}
	}
	return -1, unix.EAGAIN
}

// examine says why an O_PATH descriptor's file is not to be read.
func (f *Files) examine(fd int, w Where) (Stat, error) {
	var raw unix.Stat_t
	if err := unix.Fstat(fd, &raw); err != nil {
		return Stat{}, err
	}
	st := statOf(&raw)
	switch limit := w.MaxSize; {
	case raw.Mode&unix.S_IFMT == unix.S_IFLNK:
		return st, ErrSymlink
	case raw.Mode&unix.S_IFMT != unix.S_IFREG:
		return st, ErrNotRegular
	case w.Owner != nil && *w.Owner != st.UID:
		return st, ErrOwner
	case limit > 0 && st.Size > limit, limit <= 0 && st.Size > f.options.MaxSize:
		return st, ErrTooLarge
	}
	if !f.options.Remote {
		var fs unix.Statfs_t
		if err := f.statfs(fd, &fs); err != nil {
			return st, err
		}
		if kind, ok := remote[uint32(fs.Type)]; ok {
			return st, &RemoteError{kind}
		}
	}
	if w.Check != nil {
		return st, w.Check(st)
	}
	return st, nil
}

func statOf(raw *unix.Stat_t) Stat {
	return Stat{
		DevMajor: unix.Major(uint64(raw.Dev)), DevMinor: unix.Minor(uint64(raw.Dev)), Inode: raw.Ino,
		Size: raw.Size, Mtime: raw.Mtim.Nano(), Ctime: raw.Ctim.Nano(), UID: raw.Uid,
	}
}

// remote are file systems that ask somebody else, by statfs's f_type: the
// server is another machine, or a process that may be the one that hangs.
// Numbers: include/uapi/linux/magic.h and the file systems' own sources.
var remote = map[uint32]string{
	0x65735546: "fuse", // virtiofs too
	0x00006969: "nfs",
	0xff534d42: "cifs",
	0xfe534d42: "smb",
	0x0000517b: "smbfs",
	0x01021997: "9p",
	0x5346414f: "afs",
	0x6b414653: "afs",
	0x73757245: "coda",
	0x00c36400: "ceph",
	0x0000564c: "ncp",
	0x0bd00bd3: "lustre",
	0x47504653: "gpfs",
	0x01161970: "gfs2",
	0x7461636f: "ocfs2",
	0x20030528: "orangefs",
	0x19830326: "beegfs",
	0xaad7aaea: "panfs",
	0x013111a8: "ibrix",
	0x786f4256: "vboxsf",
	0xbacbacbc: "vmhgfs",
	0x7c7c6673: "prl_fs",
	0x61636673: "acfs",
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
