package ends

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"stackshot/internal/mounts"
	"stackshot/internal/procfs"
	"stackshot/kcdata"
)

// Bounds of what the file has of mounts.
const (
	mostMounts     = 1 << 12
	mostNamespaces = 16 // other mount namespaces, a process of each is asked
)

// table is the mounts that one process sees.
type table struct {
	list []*mounts.Mount
	err  error
}

// ownMounts reads the mounts of this process.
func (l *Looker) ownMounts() table { return l.mountsOf("self") }

func (l *Looker) mountsOf(pid string) table {
	b, err := l.read(pid, procfs.File{Name: "mountinfo", Max: maxMountinfo})
	return table{mounts.All(b), err}
}

func (t *table) piece() found {
	if t.err != nil {
		return nothing(t.err)
	}
	list := make([]kcdata.LinuxMount, 0, min(len(t.list), mostMounts))
	for _, m := range t.list[:min(len(t.list), mostMounts)] {
		list = append(list, mountRecord(m))
	}
	if len(t.list) > len(list) {
		list[len(list)-1].Flags |= kcdata.MountLarge
	}
	return func(r *Result) {
		r.Mounts = append(list, r.Mounts...)
		r.Taken.Sources |= kcdata.FilesHasMounts
	}
}

func mountRecord(m *mounts.Mount) kcdata.LinuxMount {
	v := kcdata.LinuxMount{Dev: device(m.Dev.Major, m.Dev.Minor), ID: uint32(m.ID)}
	clip(v.FSType[:], m.Type)
	source, point := clip(v.Source[:], m.Source), clip(v.Point[:], m.Point)
	if clip(v.Root[:], m.Root) || source || point {
		v.Flags |= kcdata.MountClipped
	}
	return v
}

// foreignMounts asks processes with waiting threads in other mount namespaces for what this process
// does not see: file systems at which a thread waits, and those that may hang (a thread in stat(2)
// waits for one without a descriptor).
func (l *Looker) foreignMounts(w *Wants, own table, until time.Time) found {
	ours := l.namespace()
	have := map[uint64]bool{}
	for _, m := range own.list {
		have[device(m.Dev.Major, m.Dev.Minor)] = true
	}
	var list []kcdata.LinuxMount
	hung := nothing(nil)
	for _, at := range w.namespaces(ours) {
		if !time.Now().Before(until) {
			break
		}
		t := l.mountsOf(strconv.Itoa(int(at.tgid)))
		if t.err != nil {
			hung = nothing(t.err)
		}
		for _, m := range t.list {
			if dev := device(m.Dev.Major, m.Dev.Minor); !have[dev] && (m.Kind() != "" || w.Devices[dev]) && len(list) < mostMounts {
				v := mountRecord(m)
				v.Flags, v.Tgid, v.NS = v.Flags|kcdata.MountForeign, at.tgid, at.ns
				list = append(list, v)
			}
		}
	}
	return func(r *Result) {
		hung(r)
		r.Mounts = append(r.Mounts, list...)
	}
}

// namespace is the inode of this process's mount namespace; 0: not known.
func (l *Looker) namespace() uint32 {
	b, err := l.read("self/ns", procfs.File{Name: "mnt", Op: procfs.OpLink, Max: 64})
	if err != nil {
		return 0
	}
	_, inode, err := procfs.ParseNSLink(b)
	if err != nil {
		return 0
	}
	return inode
}

// asked is a process that is asked for the mounts of its namespace.
type asked struct{ tgid, ns uint32 }

// namespaces are the mount namespaces other than ours of processes with waiting threads, the
// process of the least number for each.
func (w *Wants) namespaces(ours uint32) []asked {
	first := map[uint32]uint32{}
	for tgid, p := range w.Processes {
		if p.Waits && p.Mounts != 0 && p.Mounts != ours && (first[p.Mounts] == 0 || tgid < first[p.Mounts]) {
			first[p.Mounts] = tgid
		}
	}
	list := make([]asked, 0, len(first))
	for _, ns := range slices.Sorted(maps.Keys(first)) {
		list = append(list, asked{first[ns], ns})
	}
	slices.SortFunc(list, func(a, b asked) int { return cmp.Compare(a.tgid, b.tgid) })
	return list[:min(len(list), mostNamespaces)]
}

// connections reads how many requests each FUSE connection has unanswered, where fusectl is
// mounted. A connection's directory has the number of its file system's device
// (fuse_ctl_add_conn of fs/fuse/control.c).
func (l *Looker) connections(own table, until time.Time) found {
	i := slices.IndexFunc(own.list, func(m *mounts.Mount) bool { return m.Type == "fusectl" && m.Root == "/" })
	if i < 0 {
		return nothing(nil)
	}
	ctl := procfs.FS{Root: own.list[i].Point, Readers: l.Proc.Readers}
	ids, err := ctl.Tasks() // its directories are numbers, too
	if err != nil {
		return nothing(err)
	}
	var list []kcdata.LinuxFUSE
	hung := nothing(nil)
	for _, id := range ids {
		if !time.Now().Before(until) || len(list) >= mostMounts {
			break
		}
		files := []procfs.File{{Name: "waiting", Max: 64}}
		ctl.Read(strconv.Itoa(id), files)
		var n uint32
		if files[0].Err != nil {
			hung = nothing(files[0].Err)
		} else if _, err := fmt.Sscanf(string(files[0].Data), "%d", &n); err == nil && n > 0 {
			list = append(list, kcdata.LinuxFUSE{Dev: device(uint32(id)>>20, uint32(id)&(1<<20-1)), Flags: kcdata.FUSESums, Waiting: n})
		}
	}
	return func(r *Result) {
		hung(r)
		r.FUSE = append(r.FUSE, list...)
	}
}
