//go:build linux

package futex

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
	"stackshot/kcdata"
)

// Threads of real Rust, Go and Java programs that wait for locks: the words name nobody but
// whom a thread of the C library joins. The Rust program keeps a thread's number and 1 in its mutexes.
func TestRuntimesNameNobody(t *testing.T) {
	testneed.Lab(t, testneed.Witness)
	testneed.Slow(t)
	programs := filepath.Join("..", "userlab", "testdata")
	out := filepath.Join(t.TempDir(), "program")
	for _, c := range []struct {
		name        string
		build, argv []string
		waits       int // threads in futex(2), at least
	}{
		{"rust", []string{"rustc", "-O", "-o", out, filepath.Join(programs, "hang.rs")}, []string{out}, 3},
		{"go", []string{"go", "build", "-o", out, filepath.Join(programs, "hang", "main.go")}, []string{out}, 3},
		{"java", nil, []string{"java", "-Xmx64m", "-XX:+UseSerialGC", "-XX:-UsePerfData", filepath.Join(programs, "Blocked.java")}, 8},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.build != nil {
				testneed.Program(t, c.build[0], "gcc")
				if said, err := exec.Command(c.build[0], c.build[1:]...).CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, said)
				}
			} else {
				testneed.Program(t, c.argv[0], "javac")
			}
			cmd := exec.Command(c.argv[0], c.argv[1:]...)
			cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL}
			runtime.LockOSThread() // its end would be the program's
			defer runtime.UnlockOSThread()
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
			pid := cmd.Process.Pid
			var all []expected
			err := testtask.WaitFor(20*time.Second, func() (bool, error) {
				before := inFutex(pid)
				time.Sleep(200 * time.Millisecond)
				all = inFutex(pid)
				return len(all) >= c.waits && slices.Equal(all, before), nil
			})
			if err != nil {
				t.Fatalf("%v: %d threads wait", err, len(all))
			}
			table, at := tableOf(t, pid)
			joins := 0
			for _, e := range all {
				f := resolve(table, futexOf(t, pid, e), at[e.waiter], noMemory{})
				switch own := c.name == "java" && f.Object == kcdata.FutexGlibcMutex && f.Op == opWait; {
				case f.Object == kcdata.FutexGlibcJoin:
					joins++
				case own: // a mutex inside the virtual machine, which is glibc's
				case f.Object != 0 || f.OwnerTid != 0:
					t.Errorf("thread %d: object %d, owner %d: %+v", e.waiter, f.Object, f.OwnerTid, f)
				}
			}
			t.Logf("%d threads in futex(2), %d join another", len(all), joins)
		})
	}
}

// inFutex are the threads of a process that sleep in futex(2) now.
func inFutex(pid int) (all []expected) {
	call := fmt.Appendf(nil, "%d ", map[string]int{"amd64": 202, "arm64": 98}[runtime.GOARCH])
	tasks, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	for _, e := range tasks {
		if b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/syscall", pid, e.Name())); err == nil && bytes.HasPrefix(b, call) {
			var tid int
			fmt.Sscan(e.Name(), &tid)
			all = append(all, expected{name: e.Name(), waiter: tid})
		}
	}
	return all
}
