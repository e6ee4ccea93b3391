package kcdata

import (
	"strings"
	"testing"
)

// cgroupsFile is a file with these groups, whose paths are in strs, and one task.
func cgroupsFile(t *testing.T, strs string, groups []LinuxCgroup, path, memory string) *Snapshot {
	t.Helper()
	b := buffer(t, MagicStackshot, func(w ItemWriter) {
		ok(t, w.BeginContainer(TypeTask, 7))
		if path != "" {
			ok(t, w.String(TypeLinuxCgroupPath, path))
		}
		if memory != "" {
			ok(t, w.String(TypeLinuxMemoryCgroup, memory))
		}
		ok(t, w.EndContainer(7))
		ok(t, w.StructArray(TypeLinuxCgroup, groups))
		ok(t, w.Bytes(TypeLinuxStrings, []byte(strs)))
	})
	s, err := ParseSnapshot(b)
	ok(t, err)
	return s
}

// A task is joined to the group of its memory: by the path of that hierarchy.
func TestMemoryCgroups(t *testing.T) {
	const strs = "\x00/a\x00/b\x00"
	groups := []LinuxCgroup{{Version: 1, Path: 1, ID: 1}, {Version: 2, Path: 1, ID: 2}, {Version: 2, Path: 4, ID: 3}, {Version: 2, Path: 4, ID: 4}}
	for _, c := range []struct {
		path, memory string
		id           uint64 // 0: none
	}{{"/a", "", 2}, {"/a", "/a", 1}, {"/b", "/a", 1}, {"/b", "", 3}, {"/a", "/b", 0}, {"", "", 0}, {"/c", "", 0}} {
		s := cgroupsFile(t, strs, groups, c.path, c.memory)
		g := s.MemoryCgroups()[s.Tasks[0]]
		if g == nil && c.id != 0 || g != nil && g.ID != c.id {
			t.Errorf("%q, memory %q: %+v, want %d", c.path, c.memory, g, c.id)
		}
	}
}

// No order of the groups makes a circle, and a path outside of the table is none.
func TestCgroupsHostile(t *testing.T) {
	s := cgroupsFile(t, "\x00/a\x00", []LinuxCgroup{{Parent: 1, Path: 1}, {Parent: 0, Path: 999}, {Parent: 2}, {Parent: CgroupNoParent}, {Parent: 1 << 20}}, "", "")
	if n := len(s.Cgroups); n != 5 || len(s.Problems) != 3 {
		t.Fatalf("%d groups, %q", n, s.Problems)
	}
	for i, g := range s.Cgroups {
		if (g.Above != nil) != (i == 1) {
			t.Errorf("%d is in %+v", i, g.Above)
		}
	}
	if s.Cgroups[0].Path != "/a" || s.Cgroups[1].Path != "" {
		t.Errorf("%q, %q", s.Cgroups[0].Path, s.Cgroups[1].Path)
	}
	many := cgroupsFile(t, "\x00"+strings.Repeat("x", 2*maxCgroupPath), []LinuxCgroup{{Path: 1, Parent: CgroupNoParent}}, "", "")
	if got := len(many.Cgroups[0].Path); got != maxCgroupPath {
		t.Errorf("a path of %d bytes", got)
	}
}
