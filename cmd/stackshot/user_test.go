package main

import (
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"stackshot/internal/testneed"
)

// Without root: everything from /proc that this user may see, with one line that says why not more
// (refusals of the others' files are no wall), and the exit code of what was not stopped. The user's own
// blocked processes have their user stacks. Asked for, it is whole.
func TestNotRoot(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	t.Parallel()
	needRoot(t)
	sleep := exec.Command("sleep", "1000")
	asNobody(sleep)
	if err := sleep.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { sleep.Process.Kill(); sleep.Wait() }()
	dir := openDir(t)
	nobody := invocation{bend: asNobody}
	o := nobody.run(t, "take", "-o", dir+"/file", "--json")
	if o.want(t, exitIncomplete, "nothing was stopped"); strings.Count(o.stderr, "\n") > 2 {
		t.Errorf("more than two lines: %s", o.stderr)
	}
	for _, word := range []string{`"engine":"procfs"`, `"isolation":"none"`, `"stopped_ns":0`, `"code":"engine_procfs"`} {
		if !strings.Contains(o.stdout, word) {
			t.Errorf("no %s in %s", word, o.stdout)
		}
	}
	o = nobody.run(t, "report", "--pid", strconv.Itoa(sleep.Process.Pid), dir+"/file")
	o.want(t, exitWhole)
	for _, word := range []string{"threads in", "not root: `sudo stackshot`", "nanosleep [libc.so"} {
		if !strings.Contains(o.stdout, word) || strings.Count(o.stdout, "permission denied") > 1 {
			t.Errorf("no %q, or not one line: %s", word, o.stdout)
		}
	}
	nobody.run(t, "take", "-q", "-o", dir+"/asked", "--engine", "procfs").want(t, exitWhole)
	o = nobody.run(t, "take", "-o", dir+"/pull", "--engine", "pull")
	o.want(t, exitFailed, "pull", "operation not permitted")
	onlyFile(t, dir, "asked", "file")
}

// Doctor says what is missing and what it costs; exit code 3 where a lesser
// way works.
func TestDoctorNotRoot(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	t.Parallel()
	needRoot(t)
	o := invocation{bend: asNobody}.run(t, "doctor")
	o.want(t, exitIncomplete, "engine procfs, isolation none")
	for _, word := range []string{"no  pull: ", "ok  procfs", "no  fifo: SCHED_FIFO 99: operation not permitted", "CAP_BPF", "not effective"} {
		if !strings.Contains(o.stdout, word) {
			t.Errorf("doctor does not say %q:\n%s", word, o.stdout)
		}
	}
}

// Root in a pid namespace of its own: doctor and capture say so.
func TestPidNamespace(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	t.Parallel()
	testneed.Program(t, "mount")
	withMounts(t, func(t *testing.T) {
		in := invocation{bend: func(c *exec.Cmd) {
			// A shell mounts the namespace's own /proc; killed with the namespace.
			c.Path, c.Args = "/bin/sh", append([]string{"sh", "-c", `mount -t proc proc /proc && "$@"; exit $?`, "sh"}, c.Args...)
			c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID, Unshareflags: unix.CLONE_NEWNS}
		}}
		o := in.run(t, "doctor")
		if !strings.Contains(o.stdout, "tasks of this namespace only") {
			t.Errorf("doctor: exit code %d, %s%s", o.code, o.stdout, o.stderr)
		}
		o = in.run(t, "take")
		taken(t, o)
		if !strings.Contains(o.stdout, "namespace") {
			t.Errorf("the report does not speak of the namespace: %.500s", o.stdout)
		}
	})
}
