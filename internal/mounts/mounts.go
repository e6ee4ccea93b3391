// Package mounts tells from /proc/PID/mountinfo which file system a device or a path
// belongs to, and so whether a process that touches it may hang. It touches no mount itself.
package mounts

import (
	"bytes"
	"fmt"
	"strings"
)

// Device is a file system's number as mountinfo and /proc/PID/maps give it. stat gives
// others on btrfs, one for each subvolume. 0:0: not known.
type Device struct{ Major, Minor uint32 }

func (d Device) String() string { return fmt.Sprintf("%d:%d", d.Major, d.Minor) }

// Mount is one line of mountinfo.
type Mount struct {
	ID, Parent int
	Dev        Device
	Root       string // the directory of the file system that is mounted
	Point      string // where it is mounted, as a path from the task's root
	Type       string // "ext4", "fuse.sshfs"
	Source     string // "/dev/vda1", "server:/export"; "" if the file system has none
	Options    string // of the file system: "rw,memory"
}

// Kind is the type of a file system that may hang: its server is another machine, or a
// process, which may hang itself. Else "".
func (m *Mount) Kind() string {
	name, _, _ := strings.Cut(m.Type, ".") // fuse.sshfs
	if remote[name] {
		return m.Type
	}
	return ""
}

func (m *Mount) String() string { return m.Type + " at " + m.Point }

// remote are the file systems that may hang, by the first part of their type. autofs is
// one, since a process that looks up a name there waits for a daemon.
var remote = map[string]bool{
	"fuse": true, "fuseblk": true, "virtiofs": true, "nfs": true, "nfs4": true, "cifs": true, "smb3": true, "smbfs": true,
	"9p": true, "afs": true, "coda": true, "ceph": true, "ncpfs": true, "lustre": true, "gpfs": true, "gfs2": true,
	"ocfs2": true, "orangefs": true, "pvfs2": true, "beegfs": true, "panfs": true, "ibrix": true, "vboxsf": true,
	"vmhgfs": true, "prl_fs": true, "acfs": true, "autofs": true, "davfs": true, "glusterfs": true,
}

// Table holds the mounts of a mountinfo file. Constant after Parse; a nil Table knows none.
type Table struct {
	root  *Mount // nil: the task's root is a directory below the root of a mount
	at    map[place]*Mount
	byDev map[Device]*Mount // the first mount of each device
}

// place is where a mount covers a directory of its parent.
type place struct {
	parent int // the parent's ID
	point  string
}

// All lists the mounts of a mountinfo file, in its order. It leaves out lines of another
// form; users treat a file system that they do not find as one that may hang.
func All(b []byte) (all []*Mount) {
	for line := range bytes.Lines(b) {
		if m, ok := parseLine(string(line)); ok {
			all = append(all, m)
		}
	}
	return all
}

// Parse makes a Table of a mountinfo file.
func Parse(b []byte) *Table {
	t := &Table{at: map[place]*Mount{}, byDev: map[Device]*Mount{}}
	ids := map[int]bool{}
	var tops []*Mount
	for _, m := range All(b) {
		ids[m.ID] = true
		if t.byDev[m.Dev] == nil {
			t.byDev[m.Dev] = m
		}
		if m.Parent != m.ID {
			t.at[place{m.Parent, m.Point}] = m
		}
		if m.Point == "/" {
			tops = append(tops, m)
		}
	}
	for _, m := range tops {
		if m.Parent == m.ID || !ids[m.Parent] {
			t.root = t.top(m, "/")
		}
	}
	return t
}

// parseLine reads "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw".
func parseLine(line string) (*Mount, bool) {
	front, back, ok := strings.Cut(line, " - ")
	f := strings.Fields(front)
	tail := strings.Fields(back) // type, source, options
	if !ok || len(f) < 6 || len(tail) == 0 {
		return nil, false
	}
	m := &Mount{Root: unescape(f[3]), Point: unescape(f[4]), Type: tail[0]}
	if len(tail) > 2 {
		m.Source, m.Options = unescape(tail[1]), tail[len(tail)-1]
	}
	if n, _ := fmt.Sscanf(strings.Join(f[:3], " "), "%d %d %d:%d", &m.ID, &m.Parent, &m.Dev.Major, &m.Dev.Minor); n != 4 {
		return nil, false
	}
	return m, true
}

// unescape undoes what the kernel does to space, tab, newline, backslash and, in a source, "#".
func unescape(s string) string { return escapes.Replace(s) }

var escapes = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`, `\043`, "#")

// top is the uppermost of the mounts that cover m at point; m itself if there is none.
func (t *Table) top(m *Mount, point string) *Mount {
	for range len(t.at) {
		next := t.at[place{m.ID, point}]
		if next == nil {
			break
		}
		m = next
	}
	return m
}

// ByDevice is the first mount of a device; nil: the table has none.
func (t *Table) ByDevice(d Device) *Mount {
	if t == nil || d == (Device{}) {
		return nil
	}
	return t.byDev[d]
}

// Way lists the mounts on an absolute path, from the root's to that of the path itself, if
// no symbolic link is followed. nil: not known.
func (t *Table) Way(path string) []*Mount {
	if t == nil || t.root == nil || !strings.HasPrefix(path, "/") {
		return nil
	}
	way := []*Mount{t.root}
	for i := 1; i <= len(path); i++ {
		if i < len(path) && path[i] != '/' {
			continue
		}
		last := way[len(way)-1]
		if m := t.top(last, path[:i]); m != last {
			way = append(way, m)
		}
	}
	return way
}
