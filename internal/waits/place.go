package waits

import (
	"bytes"
	"cmp"
	"path"
	"strings"

	"stackshot/kcdata"
)

// AtFileSystem reports whether waits of kind k are for a file system or its disk, not for somebody
// at an end: the file of the call says which.
func (k Kind) AtFileSystem() bool {
	switch k {
	case FUSE, NFS, BlockIO, Writeback, PageLock, FileSystem, FSFreeze:
		return true
	}
	return false
}

// fuseMagic is the s_magic of a FUSE file system (include/uapi/linux/magic.h).
const fuseMagic = 0x65735546

// place says at which file system, mount and disk a thread waits, and who serves it. The call's
// own file tells, if it has one alone; a page of a mapping has no descriptor.
func (f *finder) place(w *Wait) {
	file := f.fileOnDisk(w)
	if w.Kind == FUSE || w.Kind == PageLock && file != nil && file.Magic == fuseMagic { // the server fills the page
		f.fuse(w, file)
		return
	}
	if file == nil {
		f.guess(w)
		return
	}
	all, _ := moreFiles(w.Thread)
	w.File = &OpenFile{File: file, Of: all, Mount: f.mountOf(w.Task, file.Dev), Device: f.device(file)}
	if w.Kind == NFS {
		w.File.Says = Elsewhere
		if m := w.File.Mount; m != nil {
			w.File.Remote, _, _ = strings.Cut(text(m.Source[:]), ":/")
		}
	}
}

// freezable are the types of file systems that can be frozen (those with freeze_fs or freeze_super).
var freezable = map[string]bool{
	"ext2": true, "ext3": true, "ext4": true, "xfs": true, "btrfs": true, "f2fs": true, "gfs2": true, "jfs": true, "nilfs2": true, "reiserfs": true, "bcachefs": true, "zfs": true,
}

// byOperands are commands whose files are those of the paths on their command lines, and no others.
var byOperands = map[string]bool{
	"touch": true, "mkdir": true, "rmdir": true, "rm": true, "unlink": true, "mv": true, "cp": true, "ln": true, "install": true,
	"chmod": true, "chown": true, "chgrp": true, "truncate": true, "fallocate": true, "tee": true, "dd": true, "mknod": true, "mkfifo": true,
}

// guess names the frozen file system of a call that has a path and no descriptor.
func (f *finder) guess(w *Wait) {
	if w.Kind != FSFreeze {
		return
	}
	m, known := f.onCommand[w.Task]
	if !known {
		m = f.nameOnCommandLine(w.Task)
		f.onCommand[w.Task] = m
	}
	w.Probably = m
}

// maxOperands bounds the paths of a command line that are looked at.
const maxOperands = 64

// nameOnCommandLine is the one file system that can be frozen in which all paths of a command lie,
// but for devices; nil: there is none, or it may be another one: the root's, one behind another
// file system, that of the current directory.
func (f *finder) nameOnCommandLine(task *kcdata.Task) (one *kcdata.LinuxMount) {
	for _, name := range operands(task.Cmdline) {
		switch m := f.mountAbove(task, name); {
		case m == nil || m.Point == rootPoint:
			return nil
		case text(m.FSType[:]) == "devtmpfs":
		case !freezable[text(m.FSType[:])] || one != nil && one.Dev != m.Dev:
			return nil
		default:
			one = m
		}
	}
	return one
}

// operands are the words of a command line that are paths; nil: they are not known.
func operands(words []string) (out []string) {
	if len(words) == 0 || len(words) > maxOperands || !byOperands[path.Base(words[0])] {
		return nil
	}
	for _, w := range words[1:] {
		key, value, _ := strings.Cut(w, "=")
		switch {
		case path.Base(words[0]) == "dd" && (key == "if" || key == "of"):
			out = append(out, value)
		case path.Base(words[0]) == "dd":
		case !strings.HasPrefix(w, "-"):
			out = append(out, w)
		case strings.Contains(w, "/"): // -t/mnt/data
			return nil
		}
	}
	return out
}

var rootPoint = kcdata.LinuxMount{Point: [256]byte{'/'}}.Point

// Bounds of what is looked at: directories of a path, mounts at a point.
const (
	maxDepth   = 64
	maxAtPoint = 256
)

// mountAbove is the mount in which a path lies, as task sees it; nil: it is not known.
func (f *finder) mountAbove(task *kcdata.Task, name string) (one *kcdata.LinuxMount) {
	if !path.IsAbs(name) || strings.Count(name, "/") > maxDepth {
		return nil
	}
	if f.points == nil {
		f.points = map[string][]int32{}
		for i := range f.s.Mounts {
			point := text(f.s.Mounts[i].Point[:])
			f.points[point] = append(f.points[point], int32(i))
		}
	}
	for name = path.Clean(name); one == nil; name = path.Dir(name) {
		all := f.points[name]
		if len(all) > maxAtPoint {
			return nil
		}
		for _, i := range all {
			switch m := &f.s.Mounts[i]; {
			case task.NS != nil && f.namespace(m) != task.NS.Mnt:
			case one != nil && one.Dev != m.Dev: // one hides the other
				return nil
			default:
				one = m
			}
		}
		if name == "/" {
			break
		}
	}
	return one
}

// fileOnDisk is the one file of w's call that a file system keeps; nil: there is none, or more
// than one. Of several, the one of a FUSE wait is that of a FUSE file system.
func (f *finder) fileOnDisk(w *Wait) (one *kcdata.LinuxFile) {
	for i := range w.Thread.Files {
		file := &w.Thread.Files[i]
		if !onDisk(file) || w.Kind == FUSE && file.Magic != fuseMagic || file.Flags&(kcdata.FileClosed|kcdata.FileUnread) != 0 {
			continue
		}
		if one != nil && one.Dev != file.Dev {
			return nil
		}
		if one == nil {
			one = file
		}
	}
	return one
}

// device is the name of the block device that file is, or is on.
func (f *finder) device(file *kcdata.LinuxFile) string {
	dev := file.Dev
	if file.Kind == kcdata.FileBlock {
		dev = file.Rdev
	}
	return f.ends.devices[dev]
}

// text is what b has before its first 0.
func text(b []byte) string {
	before, _, _ := bytes.Cut(b, []byte{0})
	return string(before)
}

// seenFrom is a file system as a mount namespace sees it.
type seenFrom struct {
	dev uint64
	ns  uint32
}

// mountOf is a mount of the file system dev, as task sees it if the file has that; else as this
// program does, or somebody else.
func (f *finder) mountOf(task *kcdata.Task, dev uint64) *kcdata.LinuxMount {
	key := seenFrom{dev: dev}
	if task.NS != nil {
		key.ns = task.NS.Mnt
	}
	if m, ok := f.mounted[key]; ok {
		return m
	}
	var best *kcdata.LinuxMount
	for _, i := range f.ends.mounts[dev] {
		if m := &f.s.Mounts[i]; best == nil || f.compareMounts(m, best, key.ns) < 0 {
			best = m
		}
	}
	f.mounted[key] = best
	return best
}

// compareMounts puts first what tells most to somebody in the mount namespace ns: its own mounts,
// whole ones, those with a place, old ones.
func (f *finder) compareMounts(a, b *kcdata.LinuxMount, ns uint32) int {
	rank := func(m *kcdata.LinuxMount) (r int) {
		if ns == 0 || f.namespace(m) != ns {
			r += 8
		}
		if m.Flags&kcdata.MountForeign != 0 {
			r += 4
		}
		if m.Point[0] == 0 {
			r += 2
		}
		if text(m.Root[:]) != "/" {
			r++
		}
		return r
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.ID, b.ID), bytes.Compare(a.Point[:], b.Point[:]), cmp.Compare(a.Tgid, b.Tgid))
}

// namespace is the mount namespace of m; that of this program has no number there.
func (f *finder) namespace(m *kcdata.LinuxMount) uint32 {
	if m.NS != 0 || m.Flags&kcdata.MountForeign != 0 {
		return m.NS
	}
	return f.ownMounts
}

// ownMounts is the mount namespace of this program.
func ownMounts(s *kcdata.Snapshot) uint32 {
	for _, task := range s.Tasks {
		if task.IsSelf() && task.NS != nil {
			return task.NS.Mnt
		}
	}
	return 0
}
