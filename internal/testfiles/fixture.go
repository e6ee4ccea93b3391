//go:build linux

package testfiles

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Process is one of the fixture's.
type Process struct {
	Name string
	Pid  int

	files []*os.File // as they are handed over: the first is descriptor 3
	plan  plan
	tids  map[string]int
	in    io.WriteCloser
	out   *bufio.Scanner
}

// Wait is one thread of the waiter.
type Wait struct {
	Name string
	Tid  int
	Nr   int // the system call
	Pid  int
	File []File // in the order of the call
}

// File is one descriptor of a call.
type File struct {
	Fd   int
	Kind uint32 // kcdata.File*
	Ends []End  // who must be found at its other end; none: it is not asked
}

// End is a descriptor of a process that leads to the other end of a file.
type End struct {
	Process *Process
	Fd      int
	Flags   uint32 // kcdata.End*, which it must have
}

// Fixture is the processes that stand.
type Fixture struct {
	Waiter, A, B *Process
	Waits        []*Wait
	Link         struct{ A, B int } // a unix socket between the holders, each one's descriptor
}

// Processes are all of them.
func (f *Fixture) Processes() []*Process { return []*Process{f.A, f.B, f.Waiter} }

// Wait finds one by its name.
func (f *Fixture) Wait(name string) *Wait {
	for _, w := range f.Waits {
		if w.Name == name {
			return w
		}
	}
	panic("testfiles: no wait is called " + name)
}

// Start makes the files and the processes, and returns when each thread is in its call.
// They end with the test.
func Start(tb testing.TB) *Fixture {
	tb.Helper()
	f := &Fixture{Waiter: &Process{Name: "waiter"}, A: &Process{Name: "a"}, B: &Process{Name: "b"}}
	m := &maker{tb: tb, f: f, dir: tb.TempDir()}
	tb.Cleanup(m.closeAll)
	m.all()
	for _, p := range f.Processes() { // the holders first, since they take the locks
		p.start(tb)
	}
	m.closeAll()
	for _, w := range f.Waits {
		w.Pid, w.Tid = f.Waiter.Pid, f.Waiter.tids[w.Name]
		w.settle(tb)
	}
	return f
}

// give makes a descriptor one of the process.
func (p *Process) give(file *os.File) (fd int) {
	p.files = append(p.files, file)
	return 2 + len(p.files)
}

// start executes the test binary with the process's descriptors, and waits for its ready.
func (p *Process) start(tb testing.TB) {
	tb.Helper()
	text, err := json.Marshal(p.plan)
	if err != nil {
		tb.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), planVar+"="+string(text))
	cmd.ExtraFiles, cmd.Stderr = p.files, os.Stderr
	in, err := cmd.StdinPipe() // it ends with this
	if err != nil {
		tb.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { in.Close(); cmd.Process.Kill(); cmd.Wait() })
	p.Pid, p.tids, p.in, p.out = cmd.Process.Pid, map[string]int{}, in, bufio.NewScanner(out)
	for p.out.Scan() {
		if p.out.Text() == ready {
			return
		}
		var name string
		var tid int
		if _, err := fmt.Sscan(p.out.Text(), &name, &tid); err != nil {
			tb.Fatalf("testfiles: %s says %q", p.Name, p.out.Text())
		}
		p.tids[name] = tid
	}
	tb.Fatalf("testfiles: %s ended before it was ready", p.Name)
}

// settle waits until the thread is in its call.
func (w *Wait) settle(tb testing.TB) {
	tb.Helper()
	until := time.Now().Add(20 * time.Second)
	if _, emulated := os.LookupEnv("STACKSHOT_TIME_FACTOR"); emulated {
		until = time.Now().Add(80 * time.Second)
	}
	for !w.Waits() {
		if time.Now().After(until) {
			tb.Fatalf("testfiles: %s (thread %d of %d) is not in call %d", w.Name, w.Tid, w.Pid, w.Nr)
		}
		time.Sleep(time.Millisecond)
	}
}

// Waits says whether /proc has the thread asleep in its call.
func (w *Wait) Waits() bool {
	dir := fmt.Sprintf("/proc/%d/task/%d/", w.Pid, w.Tid)
	call, _ := os.ReadFile(dir + "syscall")
	stat, _ := os.ReadFile(dir + "stat")
	_, state, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(string(call), fmt.Sprint(w.Nr)+" ") && strings.HasPrefix(state, "S ")
}

// closeAll gives up the fixture's own descriptors: from then on only the processes have them.
func (m *maker) closeAll() {
	for _, file := range m.made {
		file.Close()
	}
}

// filled writes until there is no room.
func filled(fd int) error {
	if err := unix.SetNonblock(fd, true); err != nil {
		return err
	}
	for page := make([]byte, 4096); ; {
		if _, err := unix.Write(fd, page); err == unix.EAGAIN {
			break
		} else if err != nil {
			return err
		}
	}
	return unix.SetNonblock(fd, false)
}

// Files are the descriptors that the process was given.
func (p *Process) Files() iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range p.files {
			if !yield(3 + i) {
				return
			}
		}
	}
}
