package screen

import (
	"bytes"
	"strings"

	"stackshot/internal/model"
	"stackshot/internal/show"
	"stackshot/internal/waits"
	"stackshot/kcdata"
)

// ofFileSystem are the begins of functions that only one kind of file system has, with the names
// of its types in mountinfo.
var ofFileSystem = []struct{ begin, types string }{
	{"ext4_", "ext4"}, {"xfs_", "xfs"}, {"btrfs_", "btrfs"}, {"f2fs_", "f2fs"}, {"ocfs2_", "ocfs2"}, {"gfs2_", "gfs2"},
	{"nfs_", "nfs nfs4"}, {"nfs3_", "nfs"}, {"nfs4_", "nfs4"}, {"cifs_", "cifs smb3"}, {"smb2_", "cifs smb3"}, {"ceph_", "ceph"}, {"v9fs_", "9p"}, {"afs_", "afs"},
}

// atMount are the waits of a file system or its disk.
var atMount = map[waits.Kind]bool{
	waits.NFS: true, waits.BlockIO: true, waits.Writeback: true, waits.PageLock: true, waits.FileSystem: true, waits.FSFreeze: true, waits.PageFault: true,
}

// placeOf names the mount and the device at which t waits in D, where its call has no descriptor
// that tells (a path, a page of a mapping): the functions on its stack name the kind of file
// system, and the machine has one of that kind alone. "" if that is not so.
func (v *view) placeOf(t *thread) string {
	w := t.wait
	if w == nil || t.state.Class != model.Blocked || !atMount[w.Kind] || w.File != nil && (w.File.Mount != nil || w.File.Device != "") {
		return ""
	}
	if v.s.Machine.Redacted != 0 || v.s.FilesTaken == nil || v.s.FilesTaken.Sources&kcdata.FilesHasMounts == 0 {
		return ""
	}
	types := v.fileSystemOf(t)
	m := v.onlyMount(types)
	if m == nil {
		return ""
	}
	var parts show.Parts
	parts.Add("%s", text(m.FSType[:]))
	source := text(m.Source[:])
	parts.If(source != "" && source != text(m.Point[:]), "%s", source)
	for i := range v.s.Devices {
		if d := &v.s.Devices[i]; d.Dev == m.Dev {
			parts.Add("on %s", text(d.Name[:]))
			break
		}
	}
	return "probably " + text(m.Point[:]) + " (" + parts.Join(", ") + "), the only one of its kind"
}

// fileSystemOf are the types of which the first function of a file system on t's stack is; nil: it
// has none.
func (v *view) fileSystemOf(t *thread) []string {
	for _, addr := range t.Kernel {
		sym, ok := v.s.Symbols.Name(addr)
		if !ok {
			continue
		}
		for _, row := range ofFileSystem {
			if strings.HasPrefix(strings.TrimLeft(sym.Name, "_"), row.begin) {
				return strings.Fields(row.types)
			}
		}
	}
	return nil
}

// onlyMount is a mount of the one file system of types that the machine has, the oldest with its
// whole tree; nil: there is none, there are several, or the file does not have all mounts.
func (v *view) onlyMount(types []string) (best *kcdata.LinuxMount) {
	for i := range v.s.Mounts {
		m := &v.s.Mounts[i]
		if m.Flags&kcdata.MountLarge != 0 {
			return nil
		}
		of := false
		for _, name := range types {
			of = of || text(m.FSType[:]) == name
		}
		switch {
		case !of || m.Point[0] == 0:
		case best != nil && best.Dev != m.Dev:
			return nil
		case best == nil || text(best.Root[:]) != "/" && text(m.Root[:]) == "/":
			best = m
		}
	}
	return best
}

// text is a text of fixed length in a record, clean and cut.
func text(b []byte) string {
	before, _, _ := bytes.Cut(b, []byte{0})
	return short(string(before))
}
