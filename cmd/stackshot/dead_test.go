package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/testtask"
	"stackshot/internal/userlab"
)

// deadMount starts n copies of sleep(1) from one FUSE mount, and has that die.
func deadMount(t *testing.T, n int) (fs *userlab.StalledFS, pids []string) {
	t.Helper()
	b, err := os.ReadFile("/bin/sleep")
	if err != nil {
		t.Fatal(err)
	}
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

// stuckReaders are the reader processes that hang or have not been waited for, of this
// machine.
func stuckReaders(t *testing.T) (pids []string) {
	t.Helper()
	list, _ := filepath.Glob("/proc/[0-9]*/task/*/stat")
	for _, name := range list {
		b, _ := os.ReadFile(name)
		if s := string(b); strings.Contains(s, "(stackshot-read) D") {
			pids = append(pids, strings.Split(name, "/")[2])
		}
	}
	slices.Sort(pids)
	return slices.Compact(pids)
}

func takeOf(t *testing.T, pids []string, more ...string) (report outcome) {
	t.Helper()
	args := append([]string{"take", "-o", t.TempDir() + "/file", "--lock-wait", "25s"}, more...)
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
// reader goes and hangs, in the first run alone.
func TestDeadMount(t *testing.T) {
	needRoot(t)
	fs, pids := deadMount(t, 8)
	local := sleeper(t, "/bin/sleep")
	pids = append(pids, local)
	before := len(stuckReaders(t))
	o := takeOf(t, pids)
	o.named(t, "default flags")
	if !strings.Contains(o.stdout, "fuse.userlab at "+fs.Dir) {
		t.Errorf("the report does not name the mount:\n%s", o.stdout)
	}
	if n := len(stuckReaders(t)); n != before {
		t.Errorf("%d readers hang", n-before)
	}
	for _, run := range []string{"first", "second", "third"} {
		o := takeOf(t, pids, "--remote-files")
		o.named(t, run+" run")
		if !strings.Contains(o.stdout, "does not answer") {
			t.Errorf("%s run: the report does not say that the mount does not answer:\n%s", run, o.stdout)
		}
		if n := len(stuckReaders(t)); n != before+1 {
			t.Errorf("%s run: %d readers hang, want 1", run, n-before)
		}
	}
	fs.Release()
	if err := testtask.WaitFor(10*time.Second, func() (bool, error) { return len(stuckReaders(t)) == before, nil }); err != nil {
		t.Error("readers are left:", stuckReaders(t))
	}
	if o := takeOf(t, pids, "--remote-files"); strings.Contains(o.stdout, "does not answer") {
		t.Errorf("back again, and left alone:\n%s", o.stdout)
	}
}

// Two mounts die, and one whose mount nobody can see any more: each costs one reader,
// the local file nothing.
func TestDeadMounts(t *testing.T) {
	needRoot(t)
	one, pids := deadMount(t, 3)
	two, more := deadMount(t, 3)
	pids = append(append(pids, more...), sleeper(t, "/bin/sleep"))
	if err := unix.Unmount(two.Dir, unix.MNT_DETACH); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Mount("none", two.Dir, "tmpfs", 0, "") }) // for its end to unmount
	before := len(stuckReaders(t))
	for _, run := range []string{"first", "second"} {
		o := takeOf(t, pids, "--remote-files")
		o.named(t, run+" run")
		if n := len(stuckReaders(t)); n > before+2 {
			t.Errorf("%s run: %d readers hang, want 2 at most", run, n-before)
		}
	}
	one.Release()
	two.Release()
	if err := testtask.WaitFor(10*time.Second, func() (bool, error) { return len(stuckReaders(t)) == before, nil }); err != nil {
		t.Error("readers are left:", stuckReaders(t))
	}
}
