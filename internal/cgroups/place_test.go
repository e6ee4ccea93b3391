package cgroups

import (
	"math/rand/v2"
	"strings"
	"testing"
)

const hybrid = `22 1 254:0 / / rw - ext4 /dev/vda rw
31 22 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw
35 31 0:32 / /sys/fs/cgroup/mem\040ory rw - cgroup cgroup rw,memory
36 31 0:33 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu
41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
`

func TestPlaces(t *testing.T) {
	const under = "22 1 254:0 / / rw - ext4 /dev/vda rw\n"
	for _, c := range []struct {
		mountinfo string
		version   uint16
		path, dir string
	}{
		{hybrid, 1, "/", "/sys/fs/cgroup/mem ory"},
		{hybrid, 1, "/a/b", "/sys/fs/cgroup/mem ory/a/b"},
		{hybrid, 2, "/a.slice", "/sys/fs/cgroup/unified/a.slice"},
		{hybrid, 2, "/../a", ""}, // of another cgroup namespace
		{hybrid, 2, "/..", ""},
		{under, 2, "/", ""}, // nothing is mounted
		// A container without a cgroup namespace: its part of the hierarchy is mounted.
		{under + "40 22 0:38 /docker/x /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", 2, "/docker/x/y", "/sys/fs/cgroup/y"},
		{under + "40 22 0:38 /docker/x /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", 2, "/docker/x", "/sys/fs/cgroup"},
		{under + "40 22 0:38 /docker/x /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", 2, "/docker/xy", ""},
		{under + "40 22 0:38 /docker/x /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", 2, "/docker", ""},
		// The host's hierarchy, mounted into a cgroup namespace.
		{under + "40 22 0:38 /.. /host rw - cgroup2 cgroup2 rw\n", 2, "/../a", "/host/a"},
		{under + "40 22 0:38 /.. /host rw - cgroup2 cgroup2 rw\n", 2, "/../../a", ""},
		// Another mount covers it; it lies behind a file system that may hang.
		{under + "40 22 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n41 40 0:39 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n", 2, "/a", ""},
		{under + "40 22 0:38 / /mnt rw - nfs4 server:/ rw\n41 40 0:39 / /mnt/cg rw - cgroup2 cgroup2 rw\n", 2, "/a", ""},
	} {
		if got := placesOf([]byte(c.mountinfo)).dir(c.version, c.path); got != c.dir {
			t.Errorf("version %d, %s: %q, want %q, in\n%s", c.version, c.path, got, c.dir, c.mountinfo)
		}
	}
}

// Every way up ends at the root, and each group above is a part of the path.
func TestParent(t *testing.T) {
	for range 1000 {
		path := ""
		for range rand.N(6) {
			path += "/" + strings.Repeat("x", 1+rand.N(3))
		}
		if path == "" {
			path = "/"
		}
		depth := strings.Count(strings.TrimSuffix(path, "/"), "/")
		last := path
		for up, ok := parent(path); ok; up, ok = parent(up) {
			if depth--; !strings.HasPrefix(last, up) || len(up) >= len(last) {
				t.Fatalf("%s is above %s", up, last)
			}
			last = up
		}
		if depth != 0 || last != "/" {
			t.Fatalf("%s: up to %s, depth %d", path, last, depth)
		}
	}
	for _, top := range []string{"/", "", "/..", "/../..", "x"} {
		if up, ok := parent(top); ok && up != "/" {
			t.Errorf("%q is above %q", up, top)
		}
	}
}
