package mounts

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

const machine = `1 1 0:2 / / rw - rootfs none rw
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
23 22 0:21 / /proc rw - proc proc rw
30 22 0:40 / /mnt/dead rw - fuse.sshfs host:/ rw,user_id=0
31 30 8:2 / /mnt/dead/disk rw - xfs /dev/sda2 rw
32 22 0:41 / /a\040b\134 rw shared:7 master:3 - nfs4 h:/x rw
33 22 0:42 / /over rw - overlay overlay rw,lowerdir=/mnt/dead
34 33 0:43 / /over rw - tmpfs hidden rw
35 34 0:44 / /over rw - btrfs /dev/sdb rw
36 22 0:45 / /home rw - autofs auto rw
37 36 8:3 / /home/u rw - ext4 /dev/sdc rw
not a line
38 22 x:1 / /broken rw - ext4 none rw
39 22 0:46 / /deadly rw - ext4 none rw
`

func names(way []*Mount) string {
	var list []string
	for _, m := range way {
		list = append(list, fmt.Sprintf("%v", m))
	}
	return strings.Join(list, ", ")
}

func TestWay(t *testing.T) {
	table := Parse([]byte(machine))
	for path, want := range map[string]string{
		"/":                "ext4 at /",
		"/usr/lib/x.so":    "ext4 at /",
		"/mnt/dead":        "ext4 at /, fuse.sshfs at /mnt/dead",
		"/mnt/dead/disk/x": "ext4 at /, fuse.sshfs at /mnt/dead, xfs at /mnt/dead/disk",
		"/mnt/deadly":      "ext4 at /",
		"/deadly/x":        "ext4 at /, ext4 at /deadly",
		"/a b\\/x":         "ext4 at /, nfs4 at /a b\\",
		"/over/usr":        "ext4 at /, btrfs at /over",
		"/home/u/bin/x":    "ext4 at /, autofs at /home, ext4 at /home/u",
		"/broken/x":        "ext4 at /",
		"relative":         "",
	} {
		if got := names(table.Way(path)); got != want {
			t.Errorf("%s: %s; want %s", path, got, want)
		}
	}
	// A task that lives below a mount's root, as after chroot, has no mount at "/".
	jail := Parse([]byte("31 30 8:2 / /data rw - xfs /dev/sda2 rw\n"))
	if way := jail.Way("/data/x"); way != nil || jail.ByDevice(Device{8, 2}) == nil {
		t.Errorf("%s", names(way))
	}
	var none *Table
	if none.Way("/") != nil || none.ByDevice(Device{8, 1}) != nil {
		t.Error("nil knows something")
	}
}

func TestKind(t *testing.T) {
	table := Parse([]byte(machine))
	for dev, want := range map[Device]string{{0, 40}: "fuse.sshfs", {0, 41}: "nfs4", {0, 45}: "autofs", {8, 1}: "", {0, 42}: "", {0, 44}: ""} {
		if m := table.ByDevice(dev); m == nil || m.Kind() != want {
			t.Errorf("%v: %v", dev, m)
		}
	}
}

// This machine's own: "/" has a way, and each mount is found where it says, or another
// lies over it.
func TestOwnTable(t *testing.T) {
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Skip(err)
	}
	table := Parse(b)
	if len(table.byDev) == 0 || table.root == nil {
		t.Fatalf("%s", b)
	}
	found := 0
	for _, m := range table.at {
		if way := table.Way(m.Point); len(way) > 0 && way[len(way)-1] == m {
			found++
		}
	}
	if found == 0 {
		t.Error("no mount is found where it is")
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(machine), "/mnt/dead/disk")
	f.Add([]byte("1 1 0:2 / / rw - a b\n2 3 0:3 / / rw - a b\n3 2 0:4 / / rw - a b\n"), "/")
	f.Fuzz(func(t *testing.T, b []byte, path string) {
		for _, m := range Parse(b).Way(path) {
			if m == nil {
				t.Fatal("nil in a way")
			}
		}
	})
}

// Each line says what of which file system lies where.
func TestAll(t *testing.T) {
	all := All([]byte("33 22 0:30 /a\\040b /sys/fs/cgroup/x rw,nosuid shared:9 - cgroup a\\043b rw,memory\nno mount\n34 22 0:31 / /c rw - nfs4\n"))
	if len(all) != 2 {
		t.Fatalf("%v", all)
	}
	if want := (Mount{33, 22, Device{0, 30}, "/a b", "/sys/fs/cgroup/x", "cgroup", "a#b", "rw,memory"}); *all[0] != want {
		t.Errorf("%+v, want %+v", *all[0], want)
	}
	if all[1].Type != "nfs4" || all[1].Options != "" {
		t.Errorf("%+v", *all[1])
	}
}
