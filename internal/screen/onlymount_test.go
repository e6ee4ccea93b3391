package screen

import (
	"testing"

	"stackshot/kcdata"
)

func (m *machine) mount(dev uint64, point, kind, source string) *kcdata.LinuxMount {
	var x kcdata.LinuxMount
	x.Dev = dev
	copy(x.Point[:], point)
	copy(x.FSType[:], kind)
	copy(x.Source[:], source)
	copy(x.Root[:], "/")
	m.s.Mounts = append(m.s.Mounts, x)
	return &m.s.Mounts[len(m.s.Mounts)-1]
}

// Who waits in D without a descriptor is told of a mount only if the machine has one file system
// of that kind alone.
func TestPlaceOf(t *testing.T) {
	stack := []string{"rpc_wait_bit_killable", "__rpc_execute", "nfs4_call_sync", "nfs4_proc_getattr", "__nfs_revalidate_inode", "vfs_statx"}
	const want = "probably /srv (nfs4, store:/srv), the only one of its kind"
	for _, c := range []struct {
		name, want string
		state      uint32
		change     func(m *machine)
	}{
		{"one", want, 2, func(m *machine) {}},
		{"one, mounted twice", want, 2, func(m *machine) { m.mount(50, "/again", "nfs4", "store:/srv") }},
		{"of another kind", want, 2, func(m *machine) { m.mount(51, "/", "ext4", "/dev/sda") }},
		{"two", "", 2, func(m *machine) { m.mount(51, "/other", "nfs4", "store:/other") }},
		{"asleep", "", 1, func(m *machine) {}},
		{"redacted", "", 2, func(m *machine) { m.s.Machine.Redacted = 1 }},
		{"not all mounts", "", 2, func(m *machine) { m.mount(50, "/x", "tmpfs", "tmpfs").Flags = kcdata.MountLarge }},
		{"mounts not read", "", 2, func(m *machine) { m.s.FilesTaken.Sources = 0 }},
	} {
		m := newMachine(1)
		m.s.FilesTaken = &kcdata.LinuxFilesTaken{Sources: kcdata.FilesHasMounts}
		m.mount(50, "/srv", "nfs4", "store:/srv")
		c.change(m)
		th := m.thread(m.proc(9, "stat", 1), c.state, stack...)
		v := m.view()
		if got := v.placeOf(v.of[th]); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
