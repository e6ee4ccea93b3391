package main

import (
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"stackshot/internal/testneed"
	"stackshot/snapshot"
)

// /proc may hide the tasks of others. The file says so, and does not say of a task that
// is there that it has ended.
func TestHiddenTasks(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	t.Parallel()
	withMounts(t, func(t *testing.T) {
		mount(t, "proc", "/proc", "proc", 0, "hidepid=2")
		file := openDir(t) + "/file"
		for _, bend := range []func(*exec.Cmd){asNobody, asNobodyWith(capsToStop)} {
			o := invocation{bend: bend}.run(t, "take", "--json", "-o", file)
			if taken(t, o); !strings.Contains(o.stdout, `"tasks_hidden"`) {
				t.Errorf("not said: %s", o.stdout)
			}
			o = invocation{bend: bend}.run(t, "report", file)
			if strings.Contains(o.stdout, "not read: proc: ended") {
				t.Errorf("said to have ended: %.3000s", o.stdout)
			}
		}
		o := stackshot(t, "take", "--json")
		if taken(t, o); strings.Contains(o.stdout, `"tasks_hidden"`) {
			t.Errorf("said to root: %s", o.stdout)
		}
	})
}

// Without /proc there is nothing to read, which is one line and not an empty snapshot.
func TestNoProc(t *testing.T) {
	testneed.Live(t)
	t.Parallel()
	withMounts(t, func(t *testing.T) {
		if err := unix.Unmount("/proc", unix.MNT_DETACH); err != nil {
			t.Fatal(err)
		}
		o := invocation{bend: func(c *exec.Cmd) { c.Dir = "/" }}.run(t, "take", "-o", openDir(t)+"/file")
		if o.want(t, exitFailed, "no /proc to read"); strings.Count(o.stderr, "\n") != 1 || o.stdout != "" {
			t.Errorf("%q %q", o.stdout, o.stderr)
		}
	})
}

// In a pid namespace with the /proc of another one, numbers of tasks mean two things: that
// is said, and no file mixes them.
func TestForeignProc(t *testing.T) {
	testneed.Live(t)
	t.Parallel()
	needRoot(t)
	in := invocation{bend: func(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID} }}
	for _, engine := range []string{snapshot.EngineAuto, snapshot.EngineProcfs} {
		o := in.run(t, "take", "--engine", engine)
		if o.want(t, exitFailed, "no /proc to read", "another pid namespace"); strings.Count(o.stderr, "\n") != 1 || o.stdout != "" {
			t.Errorf("%.2000s %s", o.stdout, o.stderr)
		}
	}
}

// A snapshot is not written to a standard output that there is not; one that is thrown
// away by somebody's own redirection is.
func TestStdoutClosed(t *testing.T) {
	testneed.Live(t)
	t.Parallel()
	for redirect, code := range map[string]int{">&-": exitUsage, ">/dev/null": exitWhole} {
		in := invocation{bend: func(c *exec.Cmd) {
			c.Path, c.Args = "/bin/sh", append([]string{"sh", "-c", `"$@" ` + redirect, "sh"}, c.Args...)
		}}
		o := in.once(t, "take", "-q", "--engine", "procfs", "-o", "-")
		if o.code != code || code != exitWhole && !strings.Contains(o.stderr, "standard output is closed") {
			t.Errorf("%s: exit code %d, %s", redirect, o.code, o.stderr)
		}
	}
}

// A helper is waited for: the first process of a container may wait for nobody, and each
// capture would leave a zombie there.
func TestNoZombies(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	needRoot(t)
	runtime.LockOSThread() // never unlocked: on one CPU, where a helper that says its word has not ended yet
	var one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &one); err != nil {
		t.Fatal(err)
	}
	for cpu := 1024; one.Count() > 1; cpu-- {
		one.Clear(cpu)
	}
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		t.Fatal(err)
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	defer unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
	for range testneed.Length(2, 4) {
		taken(t, stackshot(t, "take", "-q"))
	}
	lists, _ := filepath.Glob("/proc/self/task/*/children")
	for _, list := range lists {
		b, _ := os.ReadFile(list)
		for _, pid := range strings.Fields(string(b)) {
			var id int
			fmt.Sscan(pid, &id)
			name, _ := os.ReadFile("/proc/" + pid + "/comm")
			if strings.TrimSpace(string(name)) == saveName {
				t.Errorf("left: process %d", id)
				unix.Wait4(id, nil, 0, nil)
			}
		}
	}
}

const maxBinary = 30 << 20

// The program is one file: static, of bounded size, at home in a root that has
// nothing but /proc and /sys. Alone, it names its file itself and shows one screen.
func TestEmptyChroot(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	t.Parallel()
	st, err := os.Stat(program)
	if err != nil || st.Size() > maxBinary {
		t.Fatalf("%d bytes, want at most %d: %v", st.Size(), maxBinary, err)
	}
	f, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
			t.Error("not static")
		}
	}
	root := t.TempDir()
	withMounts(t, func(t *testing.T) {
		mount(t, "none", root, "tmpfs", 0, "size=64m")
		for _, err := range []error{
			os.Mkdir(root+"/proc", 0o755), os.Mkdir(root+"/sys", 0o755), copyFile(root+"/stackshot", program),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		mount(t, "proc", root+"/proc", "proc", 0, "")
		mount(t, "/sys", root+"/sys", "", unix.MS_BIND|unix.MS_REC, "")
		inside := invocation{bend: func(c *exec.Cmd) {
			c.Path, c.Dir, c.Env = "/stackshot", "/", []string{}
			c.SysProcAttr = &syscall.SysProcAttr{Chroot: root}
		}}
		o := inside.run(t)
		taken(t, o)
		files, _ := filepath.Glob(root + "/stackshot-*.kcdata.zst")
		if len(files) != 1 {
			t.Fatalf("files %q: %s", files, o.stderr)
		}
		mode0600(t, files[0])
		if lines := strings.Count(o.stdout, "\n"); lines == 0 || lines > plainRows || !strings.Contains(o.stdout, "stackshot report "+filepath.Base(files[0])) {
			t.Errorf("%d lines, or the last does not name the rest: %s", lines, o.stdout)
		}
		o = inside.run(t, "report", "/"+filepath.Base(files[0]))
		if o.want(t, exitWhole); !strings.Contains(o.stdout, "threads in") {
			t.Errorf("report: %.300s", o.stdout)
		}
		if o = inside.run(t, "doctor"); !strings.Contains(o.stdout, "ok  procfs") {
			t.Errorf("doctor: exit code %d, %s%s", o.code, o.stdout, o.stderr)
		}
	})
}

func copyFile(to, from string) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, b, 0o755)
}
