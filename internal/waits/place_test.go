package waits

import (
	"testing"

	"stackshot/kcdata"
)

func mount(dev uint64, id uint32, ns uint32, point, source, fstype, root string) (m kcdata.LinuxMount) {
	m.Dev, m.ID, m.NS = dev, id, ns
	copy(m.Point[:], point)
	copy(m.Source[:], source)
	copy(m.FSType[:], fstype)
	copy(m.Root[:], root)
	if ns != 0 {
		m.Flags = kcdata.MountForeign
	}
	return m
}

// Who serves a file system, and where it is mounted.
func TestFUSE(t *testing.T) {
	file := kcdata.LinuxFile{Flags: still | kcdata.FileToRead, Op: kcdata.FileOpRead, Kind: kcdata.FileRegular, Object: 500, Dev: 60, Magic: fuseMagic}
	server := func(tgid uint32) kcdata.LinuxEnd {
		e := end(tgid, 900, kcdata.EndServes)
		e.Kind, e.Object, e.Dev = kcdata.FileFUSE, 900, 60
		return e
	}
	asks := func(tid, flags uint32) func(w *world, th *kcdata.Thread) {
		return func(w *world, th *kcdata.Thread) {
			w.s.FUSE = []kcdata.LinuxFUSE{{Dev: 60, Conn: 900, Tid: tid, Flags: flags}}
		}
	}
	for _, c := range []story{
		{"by its file", inFUSE, blocked, files(file), nil, theEnds(server(20)), nil, FUSE, "serves 20!$", false, 0, "", Sure, After, ""},
		{"by its request", inFUSE, blocked, nil, nil, theEnds(server(20)), asks(10, kcdata.FUSESent), FUSE, "serves 20!$", false, 0, "", Likely, After, "request"},
		{"by the request of another namespace's number", inFUSE, blocked, nil, nil, theEnds(server(20)), asks(10, kcdata.FUSEForeign), FUSE, "", false, 0, "none", Sure, Stack, ""},
		{"two servers", inFUSE, blocked, files(file), nil, theEnds(server(20), server(21)), nil, FUSE, "serves 20!$, serves 21!$", true, 0, "", Sure, After, ""},
		{"a file of another file system", inFUSE, blocked, files(change(file, func(f *kcdata.LinuxFile) { f.Magic = 7 })), nil, theEnds(server(20)), nil, FUSE, "", false, 0, "none", Sure, Stack, ""},
		{"its server is gone", inFUSE, blocked, files(file), nil, nil, nil, FUSE, "", false, 0, NotFound, Sure, File, ""},
	} {
		do := c.do
		c.do = func(w *world, th *kcdata.Thread) {
			if do != nil {
				do(w, th)
			}
			w.s.Mounts = []kcdata.LinuxMount{mount(61, 1, 0, "/other", "x", "fuse", "/"), mount(60, 9, 0, "/bound", "sshfs", "fuse.sshfs", "/sub"), mount(60, 8, 0, "/mnt/backup", "sshfs", "fuse.sshfs", "/")}
		}
		got := c.run(t)
		if got.File == nil {
			continue
		}
		if m := got.File.Mount; m == nil || text(m.Point[:]) != "/mnt/backup" || got.Resource != (Resource{Kind: FUSE, ID: 60}) {
			t.Errorf("%s: %+v, %+v", c.name, m, got.Resource)
		}
	}
}

// A mount of the thread's own namespace goes first.
func TestMountNamespaces(t *testing.T) {
	w := newWorld()
	a, b, c := w.task(10, 1, blocked, inFUSE...), w.task(11, 1, blocked, inFUSE...), w.task(12, 1, blocked, inFUSE...)
	for i, th := range []*kcdata.Thread{a, b, c} {
		th.Files = files(kcdata.LinuxFile{Kind: kcdata.FileRegular, Dev: 60, Magic: fuseMagic})
		w.s.Tasks[i].NS = &kcdata.LinuxTaskNS{Mnt: uint32(71 + i)}
	}
	w.task(20, 1, asleep).Linux.Present |= kcdata.ThreadIsSelf
	w.last().Linux.Present |= kcdata.TaskIsSelf
	w.last().NS = &kcdata.LinuxTaskNS{Mnt: 71}
	w.s.Mounts = []kcdata.LinuxMount{mount(60, 5, 0, "/here", "x", "fuse", "/sub"), mount(60, 4, 72, "/there", "x", "fuse", "/")}
	all := w.of()
	for th, want := range map[*kcdata.Thread]string{a: "/here", b: "/there", c: "/here"} {
		if m := all.Of[th].File.Mount; m == nil || text(m.Point[:]) != want {
			t.Errorf("%d: %+v, want %s", th.ID, m, want)
		}
	}
}

// Disks and servers of files have names.
func TestPlaces(t *testing.T) {
	file := kcdata.LinuxFile{Op: kcdata.FileOpSync, Kind: kcdata.FileRegular, Object: 500, Dev: 8<<32 | 1}
	for _, c := range []struct {
		name           string
		stack          string
		file           []kcdata.LinuxFile
		kind           Kind
		device, remote string
		says           FileSays
	}{
		{"fsync", "submit_bio_wait", files(file), BlockIO, "sda1", "", ""},
		{"a disk itself", "submit_bio_wait", files(change(file, func(f *kcdata.LinuxFile) { f.Kind, f.Dev, f.Rdev = kcdata.FileBlock, 5, 259<<32 })), BlockIO, "nvme0n1", "", ""},
		{"NFS", "nfs_wait_client_init_complete", files(change(file, func(f *kcdata.LinuxFile) { f.Dev = 50 })), NFS, "", "nas.example", Elsewhere},
		{"NFS over IPv6", "nfs_wait_client_init_complete", files(change(file, func(f *kcdata.LinuxFile) { f.Dev = 51 })), NFS, "", "[fd00::7]", Elsewhere},
		{"two file systems", "submit_bio_wait", files(file, change(file, func(f *kcdata.LinuxFile) { f.Dev = 50 })), BlockIO, "", "", "none"},
		{"a page of a mapping", "submit_bio_wait", nil, BlockIO, "", "", "none"},
	} {
		w := newWorld()
		th := w.task(10, 1, blocked, c.stack)
		th.Files = c.file
		w.s.Devices = []kcdata.LinuxDevice{{Dev: 8<<32 | 1, Name: [32]byte{'s', 'd', 'a', '1'}}, {Dev: 259 << 32, Name: [32]byte{'n', 'v', 'm', 'e', '0', 'n', '1'}}}
		w.s.Mounts = []kcdata.LinuxMount{mount(50, 1, 0, "/home", "nas.example:/export", "nfs4", "/"), mount(51, 2, 0, "/v6", "[fd00::7]:/x", "nfs4", "/")}
		got := w.of().Of[th]
		if got.Kind != c.kind || says(got) != c.says || len(got.Owners) != 0 {
			t.Errorf("%s: %+v", c.name, got)
		}
		if got.File != nil && (got.File.Device != c.device || got.File.Remote != c.remote) {
			t.Errorf("%s: device %q, remote %q", c.name, got.File.Device, got.File.Remote)
		}
	}
}

// Of a call that has a path and no descriptor, the command line tells which frozen file system it is.
func TestFrozenByPath(t *testing.T) {
	for _, c := range []struct {
		name, want string
		ns         uint32
		args       []string
	}{
		{"a path", "/mnt/data", 71, []string{"touch", "-c", "/mnt/data/a/../f"}},
		{"a word before it", "/mnt/data", 0, []string{"dd", "if=/dev/zero", "of=/mnt/data/f"}},
		{"the point itself", "/mnt/data", 71, []string{"/usr/bin/cp", "/mnt/data/hosts", "/mnt/data"}},
		{"a file in memory", "", 71, []string{"cp", "/tmp/hosts", "/mnt/data"}},
		{"a size", "/mnt/data", 71, []string{"dd", "bs=1M", "of=/mnt/data/f", "conv=fsync"}},
		{"what begins like one", "", 71, []string{"dd", "if=/mnt/data/f", "of=2026.img"}},
		{"an option with a directory", "", 71, []string{"cp", "-t/mnt/data/in", "/mnt/data/f"}},
		{"a command with files of its own", "", 71, []string{"tar", "-xf", "/mnt/data/a.tar"}},
		{"behind another file system", "", 71, []string{"mv", "/ovl/a", "/mnt/data/b"}},
		{"the root, too", "", 71, []string{"cp", "/etc/hosts", "/mnt/data"}},
		{"the root alone", "", 71, []string{"touch", "/etc/hosts"}},
		{"a word that may be a path", "", 71, []string{"cp", "/mnt/data/src", "dst"}},
		{"a value that may be one", "", 71, []string{"dd", "if=/mnt/data/src", "of=dst"}},
		{"a script", "", 71, []string{"sh", "-c", "echo >/mnt/data/f"}},
		{"the mount that is inside", "/mnt/data/in", 71, []string{"touch", "/mnt/data/in/f"}},
		{"a name that begins alike", "", 71, []string{"touch", "/mnt/database"}},
		{"two file systems", "", 71, []string{"cp", "/mnt/data/f", "/mnt/data/in/f", "/mnt/data/g"}},
		{"one that cannot be frozen", "", 71, []string{"touch", "/tmp/f"}},
		{"one that hides another", "", 71, []string{"touch", "/hidden/f"}},
		{"another mount namespace", "", 72, []string{"touch", "/mnt/data/f"}},
		{"its program", "", 71, []string{"/mnt/data/touch", "f"}},
		{"no command line", "", 71, nil},
	} {
		w := newWorld()
		th := w.task(10, 1, blocked, "percpu_rwsem_wait", "mnt_want_write", "open_last_lookups")
		w.last().Cmdline = c.args
		if c.ns != 0 {
			w.last().NS = &kcdata.LinuxTaskNS{Mnt: c.ns}
		}
		w.s.Mounts = []kcdata.LinuxMount{
			mount(1, 1, 71, "/", "/dev/vda", "ext4", "/"), mount(2, 2, 71, "/mnt/data", "/dev/loop0", "ext4", "/"), mount(3, 3, 71, "/mnt/data/in", "/dev/loop1", "xfs", "/"),
			mount(7, 7, 71, "/dev", "devtmpfs", "devtmpfs", "/"), mount(8, 8, 71, "/ovl", "overlay", "overlay", "/"), mount(4, 4, 71, "/tmp", "tmpfs", "tmpfs", "/"), mount(5, 5, 71, "/hidden", "/dev/sda1", "xfs", "/"), mount(6, 6, 71, "/hidden", "/dev/sda2", "xfs", "/"),
		}
		got, point := w.of().Of[th], ""
		if got.Probably != nil {
			point = text(got.Probably.Point[:])
		}
		if got.Kind != FSFreeze || point != c.want || got.File != nil || got.Function != "percpu_rwsem_wait" {
			t.Errorf("%s: %q, %+v", c.name, point, got)
		}
	}
}

// Who serves the memory of a process gives the page.
func TestPager(t *testing.T) {
	uffd := func(tgid, of uint32) kcdata.LinuxEnd {
		e := end(tgid, 900, kcdata.EndServes)
		e.Kind, e.Object, e.Backlog = kcdata.FileUserfaultfd, 900, of
		return e
	}
	in := []string{"handle_userfault", "do_anonymous_page"}
	for _, c := range []story{
		{"another process", in, blocked, nil, nil, theEnds(uffd(20, 10), uffd(21, 7)), nil, Userfault, "pager 20!$", false, 0, "", Likely, After, ""},
		{"its own threads", in, blocked, nil, nil, theEnds(uffd(10, 10)), secondThread, Userfault, "pager 10!$", false, 0, "", Likely, After, ""},
		{"nobody", in, blocked, nil, nil, theEnds(uffd(21, 7)), nil, Userfault, "", false, 0, NotFound, Sure, File, ""},
		{"gone on", in, blocked, files(kcdata.LinuxFile{Flags: kcdata.FileMoved}), nil, theEnds(uffd(20, 10)), nil, Userfault, "", false, 0, "none", Sure, Stack, ""},
		{"while it writes to a file", in, blocked, files(kcdata.LinuxFile{Flags: still, Kind: kcdata.FileRegular, Object: 5}), nil, theEnds(uffd(20, 10)), nil, Userfault, "pager 20!$", false, 0, "", Likely, After, ""},
	} {
		c.run(t)
	}
}
