package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"stackshot/internal/testfuse"
	"stackshot/internal/testneed"

	"golang.org/x/sys/unix"
)

const (
	stallNever = 0 // stalls nowhere
	stallAll   = -1
)

// newStallingFS mounts a file system with an empty root that takes a file's bytes
// and drops them, until the request (an opcode, stallAll or stallNever) at which
// it says nothing any more. The thread must have a mount namespace of its own.
func newStallingFS(t *testing.T, dir string, at int) *testfuse.Server {
	t.Helper()
	fs, err := testfuse.Mount(dir, "stalled", func(s *testfuse.Server, r testfuse.Request) {
		if r.Opcode != testfuse.Forget && at != stallAll && at != int(r.Opcode) {
			errno, body := dropped(r)
			s.Reply(r, errno, body)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { fs.Close() })
	return fs
}

// dropped answers as a file system that keeps nothing.
func dropped(r testfuse.Request) (unix.Errno, []byte) {
	file := testfuse.Attr{Ino: 2, Mode: unix.S_IFREG | 0o600, Nlink: 1}
	switch r.Opcode {
	case testfuse.Lookup:
		return unix.ENOENT, nil
	case testfuse.Getattr:
		return 0, testfuse.Wire(testfuse.AttrOut{Attr: testfuse.RootAttr()})
	case testfuse.Setattr:
		return 0, testfuse.Wire(testfuse.AttrOut{Attr: file})
	case testfuse.Create: // valid for long: rename finds it without asking
		return 0, testfuse.Wire(testfuse.EntryOut{Node: 2, EntryValid: 1000, Attr: file}, testfuse.OpenOut{})
	case testfuse.Write:
		return 0, testfuse.Wire(testfuse.WriteOut{Size: r.IO().Size})
	case testfuse.Rename, testfuse.Rename2, testfuse.Fsync, testfuse.Flush, testfuse.Release, testfuse.Unlink:
		return 0, nil
	}
	return unix.ENOSYS, nil
}

// stall runs f beside a mounted stalling file system, and sees to it that
// nothing of it stays.
func stall(t *testing.T, at int, f func(t *testing.T, dir string)) {
	dir := filepath.Join(t.TempDir(), "mnt")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	withMounts(t, func(t *testing.T) {
		fs := newStallingFS(t, dir, at)
		f(t, dir)
		unix.Unmount(dir, unix.MNT_DETACH)
		fs.Close()
	})
	noHelperLeft(t, dir)
}

// begun runs a command again where the machine was so busy that its helper process did
// not begin in time: the command goes other ways then (TestHeldStart).
func begun(t *testing.T, run func() outcome) (o outcome) {
	t.Helper()
	for range 3 {
		if o = run(); !strings.Contains(o.stderr, "no sign of it within") {
			break
		}
		if strings.Contains(o.stderr, "the snapshot is in ") {
			o.spared(t)
		}
	}
	return o
}

// noHelperLeft waits for the helper processes that were given up on dir: once
// the file system is gone, so are they.
func noHelperLeft(t *testing.T, dir string) {
	t.Helper()
	for range 100 {
		left := helpersOf(dir)
		if len(left) == 0 {
			return
		}
		time.Sleep(30 * time.Millisecond)
	}
	t.Errorf("helpers %v are left", helpersOf(dir))
}

func helpersOf(dir string) (pids []int) {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range all {
		b, _ := os.ReadFile(file)
		if strings.Contains(string(b), saveVerb) && strings.Contains(string(b), dir) {
			pid, _ := strconv.Atoi(strings.Split(file, "/")[2])
			pids = append(pids, pid)
		}
	}
	return pids
}

// The check of the test's own file system: where nothing stalls, take writes.
func TestFUSEWithoutStall(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	t.Parallel()
	stall(t, stallNever, func(t *testing.T, dir string) {
		taken(t, stackshot(t, "take", "-o", dir+"/x"))
	})
}

// Whichever step hangs, the end is the same: the whole report, the process ends, and the ways out are
// named. Where nothing answers at all, that comes with the default limits too, in 10 s.
func TestStallAtEachStep(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	t.Parallel()
	for name, at := range map[string]int{
		"all": stallAll, "lookup": testfuse.Lookup, "access": testfuse.Access, "create": testfuse.Create, "write": testfuse.Write,
		"chmod": testfuse.Setattr, "fsync": testfuse.Fsync, "close": testfuse.Flush, "rename": testfuse.Rename2,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stall(t, at, func(t *testing.T, dir string) {
				limit, args := "500ms", []string{"take", "--engine", "procfs", "-o", dir + "/x", "--write-timeout", "500ms"}
				if at == stallAll {
					limit, args = "10s", []string{"take", "-o", dir + "/x"}
				}
				o := begun(t, func() outcome { return stackshot(t, args...) })
				o.want(t, exitIncomplete, dir+"/x", "does not answer", limit, "-o -", "/dev/shm/")
				if !strings.Contains(o.stdout, "threads in") || !strings.Contains(o.stdout, "task") {
					t.Errorf("no whole report: %.300s", o.stdout)
				}
				mode0600(t, o.spared(t))
			})
		})
	}
}

// The current directory is the stalled one: nothing waits for it either.
func TestStalledCurrentDirectory(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	testneed.Slow(t)
	t.Parallel()
	stall(t, testfuse.Create, func(t *testing.T, dir string) {
		// A shell goes there: were it our fork, this process, which serves the
		// file system, would wait for itself.
		in := invocation{bend: func(c *exec.Cmd) {
			c.Path, c.Args = "/bin/sh", append([]string{"sh", "-c", `cd "$0" && exec "$@"`, dir}, c.Args...)
		}}
		o := begun(t, func() outcome {
			return in.run(t, "take", "--engine", "procfs", "--write-timeout", "500ms")
		})
		o.want(t, exitIncomplete, "does not answer")
		mode0600(t, o.spared(t))
	})
}

// A signal while the target stalls, a file system or whoever reads a pipe: at once, and the
// snapshot that was taken is in the place of last resort.
func TestInterruptWhileStalled(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	testneed.Slow(t)
	t.Parallel()
	for _, sig := range []unix.Signal{unix.SIGINT, unix.SIGTERM} {
		for _, args := range [][]string{{"take"}, {"take", "--count", "2"}, {"hang", "--format", "json"}} {
			stall(t, testfuse.Create, func(t *testing.T, dir string) {
				file, seen := filepath.Join(dir, "x"), 0
				writes := func(string) bool { // a helper that looks whether it could, is not there so long
					seen = (seen + 1) * min(len(helpersOf(dir)), 1)
					return seen > 20
				}
				o := begun(t, func() outcome { return interruptBent(t, func(*exec.Cmd) {}, writes, sig, append(args, "-o", file)...) })
				if args[0] == "hang" && o.code == exitHang { // the helper hangs
					o.code = exitIncomplete
				}
				o.want(t, exitIncomplete, "not written", "interrupted")
				mode0600(t, o.spared(t))
			})
		}
	}
	o := interruptBent(t, func(c *exec.Cmd) { c.Stdout = fullPipe(t) }, func(string) bool { return false }, unix.SIGINT, "take", "-q", "-o", "-")
	o.want(t, exitIncomplete, "not written", "interrupted")
	mode0600(t, o.spared(t))
}
