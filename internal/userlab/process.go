//go:build linux

package userlab

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// How long a program may take to be ready, and a killed one to be gone.
const (
	readyTime = 60 * time.Second
	endTime   = 20 * time.Second
)

// readyLine is what a program writes when all its threads are made. Words that
// follow it are the program's own.
const readyLine = "ready"

// A Process is a running program of the lab. It is for the goroutine of its
// test, not safe for concurrent use.
type Process struct {
	Name string
	Pid  int
	// Members are Pid and the processes it has forked, ascending. They live as
	// long as Pid does.
	Members []int
	Says    []string // the words of the ready line
	// Apart: no unwinder without knowledge of this program's run time can know
	// its callers, so its percentage is given beside the others.
	Apart bool
	// Want are functions that must be in one stack of the process, innermost
	// first, others between them. One list per such stack.
	Want [][]string

	tb      testing.TB
	cmd     *exec.Cmd
	life    *os.File // write end; its end is the process group's
	out     *bufio.Reader
	outFile *os.File
	errFile *os.File
	ended   bool
	release []func() // before the end, last first
	after   []func() // when all are gone
}

// A launch says how to start a program and how to tell that it is ready.
type launch struct {
	name    string
	argv    []string
	env     []string // beside PATH, HOME and LANG
	files   []*os.File
	chroot  string
	dir     string // where it works, in its root
	threads int    // at least
	spin    int    // threads that never sleep, over all members
	members int    // processes, at least 1
	quiet   bool   // writes no ready line
	any     bool   // /proc is not asked for the state of the threads
}

// run starts a program and waits until it is ready. It ends with the test.
func run(tb testing.TB, l launch) *Process {
	tb.Helper()
	p := &Process{Name: l.name, tb: tb}
	tb.Cleanup(p.Close)
	if err := p.start(l); err != nil {
		tb.Fatalf("userlab: %s: %v", l.name, err)
	}
	if err := p.await(l); err != nil {
		tb.Fatalf("userlab: %s (pid %d) is not ready: %v\n%s", l.name, p.Pid, err, p.Log())
	}
	p.yield()
	return p
}

func (p *Process) start(l launch) error {
	alive, err := p.lifePipe()
	if err != nil {
		return err
	}
	defer alive.Close()
	out, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer w.Close()
	p.outFile, p.out = out, bufio.NewReader(out)
	fd, err := unix.MemfdCreate("userlab-log", unix.MFD_CLOEXEC)
	if err != nil {
		return fmt.Errorf("memfd_create: %w", err)
	}
	p.errFile = os.NewFile(uintptr(fd), "userlab-log")
	p.cmd = exec.Command(l.argv[0], l.argv[1:]...)
	p.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "LANG=C"}, l.env...)
	p.cmd.Dir = l.dir
	p.cmd.Stdout, p.cmd.Stderr = w, p.errFile
	p.cmd.ExtraFiles = append([]*os.File{alive}, l.files...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Chroot: l.chroot}
	if err := p.cmd.Start(); err != nil {
		return err
	}
	p.Pid = p.cmd.Process.Pid
	p.Members = []int{p.Pid}
	// No other group can have this number while the process is not reaped.
	if _, err := unix.FcntlInt(alive.Fd(), unix.F_SETOWN, -p.Pid); err != nil {
		p.cmd.Process.Kill()
		return fmt.Errorf("F_SETOWN: %w", err)
	}
	return nil
}

// lifePipe makes the pipe of invariant U3 and gives its read end.
func (p *Process) lifePipe() (*os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p.life = w
	fd := r.Fd() // blocking from here on
	flags, err := unix.FcntlInt(fd, unix.F_GETFL, 0)
	if err == nil {
		_, err = unix.FcntlInt(fd, unix.F_SETSIG, int(unix.SIGKILL))
	}
	if err == nil {
		_, err = unix.FcntlInt(fd, unix.F_SETFL, flags|unix.O_ASYNC)
	}
	if err != nil {
		r.Close()
		return nil, fmt.Errorf("life pipe: %w", err)
	}
	return r, nil
}
