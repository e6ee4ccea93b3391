//go:build linux

package userlab

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
)

// hangs says whether reading a file takes more than a second. Another process
// reads it, which may live on until the test's end: not even a kill ends a read
// that a FUSE server has been asked for.
func hangs(t *testing.T, path string) bool {
	t.Helper()
	cmd := exec.Command("cat", path)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	select {
	case err := <-done:
		if err != nil {
			t.Fatalf("cat %s: %v", path, err)
		}
		return false
	case <-time.After(time.Second):
		cmd.Process.Kill()
		return true
	}
}

func TestLockedMapHoldsItsLock(t *testing.T) {
	testneed.Lab(t, testneed.Witness)
	testneed.Slow(t)
	p := LockedMap(t)
	dir := fmt.Sprintf("/proc/%d/", p.Pid)
	for _, name := range []string{"maps", "cmdline", "smaps"} {
		if !hangs(t, dir+name) {
			t.Errorf("%s was read", dir+name)
		}
	}
	if hangs(t, dir+"stat") {
		t.Error("stat was not read")
	}
	awaitKernel(p.Process, 'D', "fuse_file_mmap") // still
	p.Release()
	err := testtask.WaitFor(endTime, func() (bool, error) {
		s, err := stateOf(fmt.Sprintf("/proc/%d", p.Pid))
		return s == 'Z', err
	})
	if err != nil {
		t.Errorf("not released: %v", err)
	}
}

func TestSlowExecIsBeforeTheNewImage(t *testing.T) {
	testneed.Lab(t, testneed.Witness)
	p := SlowExec(t)
	if exe := exeOf(t, p.Pid); exe == p.FS.Path("image") {
		t.Errorf("exe is %s already", exe)
	}
}

func TestLateExecHasTheNewImage(t *testing.T) {
	testneed.Lab(t, testneed.Witness)
	p := LateExec(t)
	if exe := exeOf(t, p.Pid); exe != p.FS.Path("image") {
		t.Errorf("exe is still %s", exe)
	}
}

func exeOf(t *testing.T, pid int) string {
	t.Helper()
	exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	if err != nil {
		t.Fatal(err)
	}
	return exe
}

func TestStalledBinaryCannotBeRead(t *testing.T) {
	testneed.Lab(t, testneed.Witness)
	testneed.Slow(t)
	p := StalledBinary(t)
	if hangs(t, fmt.Sprintf("/proc/%d/maps", p.Pid)) {
		t.Error("maps was not read")
	}
	if exe := fmt.Sprintf("/proc/%d/exe", p.Pid); !hangs(t, exe) {
		t.Errorf("%s was read", exe)
	}
}
