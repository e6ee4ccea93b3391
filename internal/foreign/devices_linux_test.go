package foreign

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/mounts"
	"stackshot/internal/procfs"
	"stackshot/internal/testneed"
	"stackshot/internal/userlab"
)

var (
	disk   = where{dev: mounts.Device{Major: 250, Minor: 1}, name: "ext4 at /", seen: true}
	server = where{dev: mounts.Device{Major: 250, Minor: 2}, name: "nfs at /mnt", kind: "nfs", seen: true}
	hidden = where{dev: mounts.Device{Major: 250, Minor: 3}, name: "device 250:3"}
)

func noMark() *mark { return &mark{} }

// lateOn has a file of a way be late, that was given up and came loose at once.
func lateOn(t *testing.T, d *devices, way ...where) {
	t.Helper()
	v, err := d.enter(way)
	if err != nil {
		t.Fatal(err)
	}
	v.end()
	v.giveUp(false, noMark)
}

func answered(t *testing.T, d *devices, way ...where) {
	t.Helper()
	v, err := d.enter(way)
	if err != nil {
		t.Fatal(err)
	}
	v.answered()
	v.end()
}

func refused(d *devices, way ...where) bool {
	v, err := d.enter(way)
	if err == nil {
		v.end()
	}
	var hung *HungError
	return errors.As(err, &hung)
}

// A device that never answered is left alone after one late file; one that has
// answered after two with no answer between them. Who asks to forgive has it asked once
// more, and a device that is late again is left alone at once.
func TestLateDevice(t *testing.T) {
	d := newDevices(4)
	began := time.Now()
	lateOn(t, d, disk)
	if !refused(d, disk) {
		t.Error("it never answered, and is not left alone")
	}
	d.forgive(time.Now())
	if !refused(d, disk) {
		t.Error("what hung before is forgiven too")
	}
	d.forgive(began)
	answered(t, d, disk)
	lateOn(t, d, disk)
	answered(t, d, disk)
	lateOn(t, d, disk)
	if refused(d, disk) {
		t.Error("left alone, with an answer between")
	}
	lateOn(t, d, disk)
	if !refused(d, disk) {
		t.Error("twice late in a row, and not left alone")
	}
	d.forgive(began)
	lateOn(t, d, disk)
	if !refused(d, disk) {
		t.Error("late again, and not left alone")
	}
	if refused(d, server) || refused(d, hidden) {
		t.Error("other devices are left alone")
	}
}

// What hangs is where it may, not the disk before it nor the one behind it.
func TestBlame(t *testing.T) {
	for _, at := range []where{server, hidden} {
		d := newDevices(4)
		answered(t, d, disk)
		lateOn(t, d, disk, at)
		if refused(d, disk) || !refused(d, at) {
			t.Errorf("%s: refused %v, the disk %v", at.name, refused(d, at), refused(d, disk))
		}
	}
}

// One reader at a time where it is not known that the device answers, or it may hang;
// more than one elsewhere, and never all.
func TestOneReaderInTheUnknown(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	for _, c := range []struct {
		at     where
		proved bool
		most   int
	}{{disk, false, 1}, {disk, true, 3}, {server, true, 1}, {hidden, true, 1}} {
		d := newDevices(4)
		if c.proved {
			answered(t, d, c.at)
		}
		var mu sync.Mutex
		var wg sync.WaitGroup
		inside, most := 0, 0
		for range 20 {
			wg.Go(func() {
				v, err := d.enter([]where{c.at})
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				inside++
				most = max(most, inside)
				mu.Unlock()
				time.Sleep(3 * time.Millisecond)
				mu.Lock()
				inside--
				mu.Unlock()
				v.end()
			})
		}
		wg.Wait()
		if most > c.most {
			t.Errorf("%+v: %d readers at a time", c, most)
		}
	}
}

// testSlots is a file of slots of the test's own.
func testSlots(t *testing.T) slots { return slots{filepath.Join(t.TempDir(), "readers")} }

// What one run notes another heeds: the device of a reader that hangs is left alone,
// and with four of them nobody goes where it may hang. It counts until the last process
// has closed it.
func TestSlotsOfOtherRuns(t *testing.T) {
	began := time.Now().Truncate(time.Second) // since is in whole seconds, or finer
	s := testSlots(t)
	d := newDevices(4)
	d.slots = s
	var marks []*mark
	for i := range maxStuck {
		m := &mark{file: s.open(), pid: 100 + i}
		m.set(mounts.Device{Major: 240, Minor: uint32(i)})
		marks = append(marks, m)
	}
	if list := s.taken(); len(list) != maxStuck || list[2].pid != 102 || list[2].dev != (mounts.Device{Major: 240, Minor: 2}) || list[2].since.Before(began) {
		t.Errorf("%+v", list)
	}
	theirs := where{dev: mounts.Device{Major: 240, Minor: 2}, name: "ext4 at /dead", seen: true}
	_, err := d.enter([]where{disk, theirs})
	var hung *HungError
	if !errors.As(err, &hung) || hung.Other != 102 || !strings.Contains(err.Error(), "ext4 at /dead") {
		t.Errorf("where another's reader hangs: %v", err)
	}
	if _, err := d.enter([]where{disk, server}); !errors.Is(err, procfs.ErrExhausted) || !strings.Contains(err.Error(), "nfs at /mnt") {
		t.Errorf("with four that hang: %v", err)
	}
	answered(t, d, disk)
	late := &mark{file: s.open(), pid: 1} // a fifth finds no slot, and does no harm
	late.set(disk.dev)
	late.clear()
	for _, m := range marks[:3] {
		m.file.Close()
	}
	copied, err := unix.Dup(int(marks[3].file.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	marks[3].file.Close()
	if list := s.taken(); len(list) != 1 || list[0].pid != 103 {
		t.Errorf("a copy is held: %+v", list)
	}
	unix.Close(copied)
	if list := s.taken(); len(list) != 0 {
		t.Errorf("%+v", list)
	}
	answered(t, d, disk, server)
}

// Only a file of our own, for nobody else to open, is believed.
func TestSlotsOfOthersAreNot(t *testing.T) {
	testneed.Live(t)
	dir := t.TempDir()
	for name, make := range map[string]func(path string) error{
		"readable": func(p string) error { return errors.Join(os.WriteFile(p, nil, 0o600), os.Chmod(p, 0o644)) },
		"link":     func(p string) error { return os.Symlink(filepath.Join(dir, "readable"), p) },
		"fifo":     func(p string) error { return unix.Mkfifo(p, 0o600) },
		"theirs":   func(p string) error { return errors.Join(os.WriteFile(p, nil, 0o600), os.Chown(p, 4242, 4242)) },
	} {
		if name == "theirs" && os.Geteuid() != 0 {
			continue
		}
		path := filepath.Join(dir, name)
		if err := make(path); err != nil {
			t.Fatal(err)
		}
		if f := (slots{path}).open(); f != nil {
			t.Errorf("%s was opened", name)
		}
	}
}

// A file system that answers, then dies: the next file costs one reader, those after it
// none, local files go on; another run (Files) adds none. Below an overlay too, but
// there another run finds out by one of its own: its kind says nothing.
func TestMountDiesBetween(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	testneed.Slow(t)
	if os.Getuid() != 0 {
		t.Skip("mounting a file system needs root")
	}
	for _, over := range []bool{false, true} {
		t.Run(fmt.Sprintf("overlay %v", over), func(t *testing.T) {
			fs := userlab.NewDyingFS(t, userlab.StalledFile{Name: "a", Data: []byte("content"), Mode: 0o644, Direct: true}, userlab.StalledFile{Name: "b", Data: []byte("content"), Mode: 0o644, Direct: true})
			dir := fs.Dir
			if over {
				dir = overlay(t, fs.Dir)
			}
			t.Cleanup(fs.Release)
			f := processFiles(t, Options{Limit: time.Second, Remote: true})
			f.devices.slots = testSlots(t)
			f.processes.slots = f.devices.slots
			if v, err := f.Load(dir+"/a", whole); err != nil || string(v.([]byte)) != "content" {
				t.Fatal(v, err)
			}
			fs.Die()
			local := write(t, filepath.Join(t.TempDir(), "local"), []byte("local"))
			for i := range 8 {
				path := fmt.Sprintf("%s/%s", dir, []string{"a", "b"}[i%2])
				v, err := f.Load(path, whole)
				wantErr(t, v, err, procfs.ErrTimeout, path)
				if v, err := f.Load(local, whole); err != nil || string(v.([]byte)) != "local" {
					t.Errorf("beside it: %v, %v", v, err)
				}
			}
			if n := f.Hanging(); n != 1 {
				t.Errorf("%d readers hang", n)
			}
			other := processFiles(t, Options{Limit: time.Second, Remote: true})
			other.devices.slots = f.devices.slots
			v, err := other.Load(dir+"/b", whole)
			wantErr(t, v, err, procfs.ErrTimeout, dir)
			var hung *HungError
			switch more := other.Hanging(); {
			case over && more != 1: // what is below it nobody can see: one of theirs found out
				t.Errorf("another run: %v, %d hang", err, more)
			case !over && (!errors.As(err, &hung) || hung.Other == 0 || more != 0):
				t.Errorf("another run: %v, %d hang", err, more)
			}
			fs.Release()
			await(t, "its end", func() bool { return f.Hanging()+other.Hanging() == 0 && len(f.devices.slots.taken()) == 0 })
			f.RetryLate(time.Time{})
			if v, err := f.Load(dir+"/b", whole); err != nil || string(v.([]byte)) != "content" {
				t.Errorf("back again: %v, %v", v, err)
			}
		})
	}
}

// overlay mounts one with a lower directory.
func overlay(t *testing.T, lower string) string {
	t.Helper()
	dir := t.TempDir()
	empty := t.TempDir()
	if err := unix.Mount("overlay", dir, "overlay", unix.MS_RDONLY, "lowerdir="+lower+":"+empty); err != nil {
		t.Fatalf("overlay of %s: %v", lower, err)
	}
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
	return dir
}

// A symbolic link is followed only when it is known where it leads: a directory of
// debug files, or a process's /tmp, may be a link to a dead mount, and the disk that
// the link is on is not to blame.
func TestLinkToADeadMount(t *testing.T) {
	testneed.Live(t)
	if os.Getuid() != 0 {
		t.Skip("mounting a file system needs root")
	}
	fs := userlab.NewDyingFS(t, userlab.StalledFile{Name: "a", Data: []byte("content"), Mode: 0o644})
	fs.Die()
	t.Cleanup(fs.Release)
	root := t.TempDir()
	for name, target := range map[string]string{"tmp": fs.Dir, "loop": "loop/x", "again": "tmp", "up": "../.." + fs.Dir} {
		if err := os.Symlink(target, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(root, "file"), []byte("file"))
	f := newFiles(t, Options{})
	for _, name := range []string{"tmp", "again", "up"} {
		path := filepath.Join(root, name, "a")
		v, err := f.Load(path, whole)
		if name == "up" && errors.Is(err, unix.ENOENT) {
			continue // as deep as it is
		}
		wantErr(t, v, err, ErrRemote, path)
	}
	if _, err := f.Load(filepath.Join(root, "loop/a"), whole); !errors.Is(err, unix.ELOOP) {
		t.Errorf("loop: %v", err)
	}
	if v, err := f.Load(filepath.Join(root, "file"), whole); err != nil || string(v.([]byte)) != "file" || f.Hanging() != 0 {
		t.Errorf("beside it: %v, %v, %d hang", v, err, f.Hanging())
	}
}
