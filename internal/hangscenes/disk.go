//go:build linux && (amd64 || arm64)

package hangscenes

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"golang.org/x/sys/unix"

	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
	"stackshot/internal/userlab"
)

// slowDisk: three programs in D, at the files of a file system whose device gives a kilobyte a
// second: a loop device, by the limits of a control group.
func slowDisk(tb testing.TB, hangs *userlab.Hangs) Standing {
	testneed.Program(tb, "mkfs.ext4")
	d := newDisk(tb)
	g := newGroup(tb, diskController(), "slow-disk")
	words := []string{g.procs()}
	names := []string{"orders-db", "indexer", "backup"}
	for _, n := range names {
		words = append(words, n, d.file(n))
	}
	h := hangs.StartScene(tb, userlab.Scene{Name: "disk", Words: words})
	// Before the processes end, which cannot while they wait for the device.
	tb.Cleanup(func() { g.limit(d, "max") })
	g.limit(d, "1024")
	pids := pidsOf(h, names...)
	err := inD(pids)
	if err != nil {
		tb.Fatalf("hangscenes: %v do not wait for the disk: %v", pids, err)
	}
	return Standing{Pids: pids, Says: []string{mountPattern(d.dir), `\bloop` + fmt.Sprint(d.number) + `\b`}}
}

// inD waits until all processes are in D.
func inD(pids []int) error {
	return testtask.WaitFor(goneTime, func() (bool, error) {
		for _, pid := range pids {
			b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
			if err != nil || !bytes.Contains(b, []byte(") D ")) {
				return false, err
			}
		}
		return true, nil
	})
}

// mountPattern matches a mount point that is named.
func mountPattern(dir string) string { return regexp.QuoteMeta(dir) + `\b` }

// limit sets how many bytes a second the processes of a group have of a device; "max": all.
func (g group) limit(d disk, bytes string) {
	g.tb.Helper()
	device := fmt.Sprintf("7:%d ", d.number)
	if g.second {
		g.set("", "io.max", device+"rbps="+bytes+" wbps="+bytes)
		return
	}
	if bytes == "max" {
		bytes = "0"
	}
	for _, way := range []string{"read", "write"} {
		g.set("blkio.throttle."+way+"_bps_device", "", device+bytes)
	}
}

// disk is a loop device with a file system of ext4. It goes when nobody uses it any more.
type disk struct {
	dir    string
	number uint32
}

func (d disk) file(name string) string { return filepath.Join(d.dir, name) }

// newDisk makes a disk, and a file of a megabyte for each program of the scene.
func newDisk(tb testing.TB) disk {
	tb.Helper()
	d, err := makeDisk(tb)
	for _, name := range []string{"orders-db", "indexer", "backup"} {
		if err == nil {
			err = os.WriteFile(d.file(name), make([]byte, 1<<20), 0o600)
		}
	}
	if err != nil {
		tb.Fatalf("hangscenes: disk: %v", err)
	}
	unix.Sync()
	return d
}

func makeDisk(tb testing.TB) (d disk, err error) {
	image := filepath.Join(tb.TempDir(), "image")
	if err = os.WriteFile(image, nil, 0o600); err == nil {
		err = os.Truncate(image, 16<<20)
	}
	if err != nil {
		return d, err
	}
	if out, err := exec.Command("mkfs.ext4", "-q", "-F", "-O", "^has_journal", image).CombinedOutput(); err != nil {
		return d, fmt.Errorf("mkfs.ext4: %w: %s", err, out)
	}
	if d.dir, err = os.MkdirTemp("", "data-"); err != nil { // its name is short, as those of mount points are
		return d, err
	}
	loop, err := attach(image, &d.number)
	if err == nil {
		defer loop.Close()
		err = unix.Mount(loop.Name(), d.dir, "ext4", 0, "")
	}
	tb.Cleanup(func() {
		if err := errors.Join(unix.Unmount(d.dir, 0), os.Remove(d.dir)); err != nil {
			tb.Errorf("hangscenes: end of the disk at %s: %v", d.dir, err)
		}
	})
	return d, err
}

// attach puts an image behind a loop device, until nobody has that open.
func attach(image string, number *uint32) (*os.File, error) {
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer control.Close()
	file, err := os.OpenFile(image, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	for range 10 { // somebody else may have taken the one that was free
		n, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return nil, err
		}
		loop, err := os.OpenFile(fmt.Sprintf("/dev/loop%d", n), os.O_RDWR, 0)
		if err != nil {
			return nil, err
		}
		err = unix.IoctlLoopConfigure(int(loop.Fd()), &unix.LoopConfig{Fd: uint32(file.Fd()), Info: unix.LoopInfo64{Flags: unix.LO_FLAGS_AUTOCLEAR}})
		if err == nil {
			*number = uint32(n)
			return loop, nil
		}
		loop.Close()
		if !errors.Is(err, unix.EBUSY) {
			return nil, err
		}
	}
	return nil, errors.New("no loop device is free")
}
