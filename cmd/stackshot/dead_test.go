package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"stackshot/internal/mounts"
	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
	"stackshot/internal/userlab"
)

// deadMount starts n copies of sleep(1) from one FUSE mount, and has that die.
func deadMount(t *testing.T, n int) (fs *userlab.StalledFS, pids []string) {
	t.Helper()
	b := read(t, "/bin/sleep")
	var files []userlab.StalledFile
	for i := range n {
		files = append(files, userlab.StalledFile{Name: fmt.Sprintf("prog%d", i), Data: b, Mode: 0o755})
	}
	fs = userlab.NewDyingFS(t, files...)
	for _, f := range files {
		pids = append(pids, sleeper(t, fs.Path(f.Name)))
	}
	fs.Die()
	t.Cleanup(fs.Release) // before they are killed
	return fs, pids
}

// sleeper starts a copy of sleep(1) by way of a shell: were it our fork that executes
// it, this process, which may serve its file, would wait for itself.
func sleeper(t *testing.T, path string) (pid string) {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", `exec "$0" 600`, path)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	pid = fmt.Sprint(cmd.Process.Pid)
	err := testtask.WaitFor(20*time.Second, func() (bool, error) {
		exe, _ := os.Readlink("/proc/" + pid + "/exe")
		wchan, _ := os.ReadFile("/proc/" + pid + "/wchan")
		return filepath.Base(exe) == filepath.Base(path) && strings.Contains(string(wchan), "nanosleep"), nil
	})
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return pid
}

// hanging are the reader processes that hang on a device, as they are noted for other
// runs.
func hanging(t *testing.T, devices ...mounts.Device) (pids []int) {
	t.Helper()
	b, err := os.ReadFile("/run/stackshot.readers")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(bytes.ReplaceAll(b, []byte{0}, nil))) {
		var pid int
		var dev mounts.Device
		if n, _ := fmt.Sscanf(line, "%d %d:%d", &pid, &dev.Major, &dev.Minor); n != 3 || !slices.Contains(devices, dev) {
			continue
		}
		if stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); bytes.Contains(stat, []byte("(stackshot-read) ")) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// deviceOf is the device of what is mounted at dir.
func deviceOf(t *testing.T, dir string) mounts.Device {
	t.Helper()
	b := read(t, "/proc/self/mountinfo")
	way := mounts.Parse(b).Way(dir)
	if len(way) == 0 {
		t.Fatal("nothing is mounted at", dir)
	}
	return way[len(way)-1].Dev
}

func takeOf(t *testing.T, pids []string, more ...string) (report outcome) {
	t.Helper()
	args := append([]string{"take", "-o", t.TempDir() + "/file"}, more...) // of two -o the last counts
	for _, pid := range pids {
		args = append(args, "--pid", pid)
	}
	return stackshot(t, args...)
}

// named wants the local program's stack with all its names.
func (o outcome) named(t *testing.T, what string) {
	t.Helper()
	if o.code != exitWhole || !strings.Contains(o.stdout, "nanosleep [") || !strings.Contains(o.stdout, "libc_start_main") {
		t.Errorf("%s: exit code %d, no names in\n%s%s", what, o.code, o.stdout, o.stderr)
	}
}

// Eight programs of a mount that is dead: nobody goes there, the report says which
// mount was left alone, and local files have their names. With --remote-files one
// reader goes and hangs, in the first run alone, and each command ends in time.
func TestDeadMount(t *testing.T) {
	testneed.Lab(t, testneed.Witness)
	testneed.Slow(t)
	needRoot(t)
	fs, pids := deadMount(t, 8)
	local := sleeper(t, "/bin/sleep")
	pids = append(pids, local)
	dev := deviceOf(t, fs.Dir)
	o := takeOf(t, pids)
	o.named(t, "default flags")
	if !strings.Contains(o.stdout, "fuse.userlab at "+fs.Dir) {
		t.Errorf("the report does not name the mount:\n%s", o.stdout)
	}
	if n := len(hanging(t, dev)); n != 0 {
		t.Errorf("%d readers hang", n)
	}
	file := t.TempDir() + "/file"
	for i, run := range [][]string{{"take", "-o", file}, {"take", "-o", file}, {"report", file}, {"symbolize", file}} {
		var o outcome
		if run = append(run, "--remote-files"); i < 2 {
			o = takeOf(t, pids, run[1:]...)
			o.named(t, fmt.Sprint("run ", i))
		} else {
			o = stackshot(t, run...)
			o.want(t, exitWhole)
		}
		if !strings.Contains(o.stdout+o.stderr, "does not answer") {
			t.Errorf("%q does not say that the mount does not answer:\n%s%s", run, o.stdout, o.stderr)
		}
		if n := len(hanging(t, dev)); n != 1 {
			t.Errorf("%q: %d readers hang, want 1", run, n)
		}
		if t.Logf("%s %v", run[0], o.took); o.took > 15*time.Second { // 10 s for files, and 5
			t.Errorf("%q took %v", run, o.took)
		}
	}
	fs.Release()
	if err := testtask.WaitFor(10*time.Second, func() (bool, error) { return len(hanging(t, dev)) == 0, nil }); err != nil {
		t.Error("readers are left:", hanging(t, dev))
	}
	if o := takeOf(t, pids, "--remote-files"); strings.Contains(o.stdout, "does not answer") {
		t.Errorf("back again, and left alone:\n%s", o.stdout)
	}
}
