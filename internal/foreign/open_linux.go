package foreign

import (
	"cmp"

	"golang.org/x/sys/unix"
)

// maxLinks is how many symbolic links a path may have: the kernel's own limit.
const maxLinks = 40

// find finds w and checks that it meets its conditions. Called on a helper.
func (f *Files) find(a *attempt, w Where) (Stat, error) {
	is, err := f.look(a, w)
	if err == nil {
		err = f.judge(a, is, w)
	}
	if err != nil {
		return Stat{}, at("open", w, err)
	}
	return is.Stat, nil
}

// look finds w. It follows a symbolic link only when it knows which file systems that
// leads to, and none of them is refused.
func (f *Files) look(a *attempt, w Where) (found, error) {
	file := w.Path
	for range maxLinks {
		r := request{Op: opLook, Root: []byte(w.Root), Path: []byte(file), NoFollow: w.NoFollow, Guarded: a.guarded}
		got, err := a.ask(r, nil)
		if err != unix.ELOOP || !a.guarded {
			return got.Found, err
		}
		r.Op = opExpand
		if got, err = a.ask(r, nil); err != nil {
			return found{}, err
		}
		file = string(got.Path)
		way, guarded := f.way(w, file)
		if err := f.refuseRemote(way); err != nil {
			return found{}, err
		}
		if err := a.visit.further(way); err != nil {
			return found{}, err
		}
		a.guarded = guarded
	}
	return found{}, unix.ELOOP
}

// open finds w and opens it for reading.
func (f *Files) open(a *attempt, w Where) (Stat, error) {
	st, err := f.find(a, w)
	if err != nil {
		return Stat{}, err
	}
	if _, err := a.ask(request{Op: opOpen}, nil); err != nil {
		return Stat{}, at("open", w, err)
	}
	a.visit.answered()
	return st, nil
}

// judge says why a file may not be read; nil: it may.
func (f *Files) judge(a *attempt, is found, w Where) error {
	switch {
	case is.Mode&unix.S_IFMT == unix.S_IFLNK:
		return ErrSymlink
	case is.Mode&unix.S_IFMT != unix.S_IFREG:
		return ErrNotRegular
	case w.Owner != nil && *w.Owner != is.Stat.UID:
		return ErrOwner
	case is.Stat.Size > cmp.Or(w.MaxSize, f.options.MaxSize):
		return ErrTooLarge
	}
	if a.unknown && !f.options.Remote {
		magic, err := f.fsType(a)
		if err != nil {
			return err
		}
		if kind, ok := remote[magic]; ok {
			return remoteError(kind)
		}
	}
	if w.Check != nil {
		return w.Check(is.Stat)
	}
	return nil
}

// remote are the file systems that may hang, by statfs's f_type: their server is another
// machine, or a process, which may hang itself. It serves for files whose file system no
// mountinfo lists; package mounts has the names for all others. Numbers:
// include/uapi/linux/magic.h and the file systems' own sources.
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
