//go:build linux

package futex

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
	"stackshot/kcdata"
)

// expected is one line of testdata/waits.c.
type expected struct {
	name          string
	waiter        int
	object, owner uint32
	lock          uint64
}

// library runs testdata/waits.c, built by a compiler, until all its threads wait.
func library(t *testing.T, args ...string) (pid int, all []expected) {
	t.Helper()
	testneed.Program(t, args[0])
	prog := filepath.Join(t.TempDir(), "waits")
	if out, err := exec.Command(args[0], append(args[1:], "-g", "-o", prog, "testdata/waits.c", "-pthread")...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var argv []string
	if os.Geteuid() == 0 {
		argv = []string{"fifo"}
	}
	c := exec.Command(prog, argv...)
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.Stderr = os.Stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Process.Kill(); c.Wait() })
	lines := bufio.NewScanner(out)
	for lines.Scan() && lines.Text() != "ready" {
		var e expected
		if n, err := fmt.Sscanf(strings.ReplaceAll(lines.Text(), "(nil)", "0x0"), "%s %d %d %d %v", &e.name, &e.waiter, &e.object, &e.owner, &e.lock); n != 5 {
			t.Fatalf("%q: %v", lines.Text(), err)
		}
		all = append(all, e)
	}
	if lines.Text() != "ready" {
		t.Fatal("the program ended")
	}
	return c.Process.Pid, all
}

// futexOf is the futex call that a thread waits in, by /proc/PID/task/TID/syscall, with the
// bytes around the word, as the window would record it.
func futexOf(t *testing.T, pid int, e expected) *kcdata.LinuxFutex {
	t.Helper()
	nr := map[string]uint64{"amd64": 202, "arm64": 98}[runtime.GOARCH]
	var args []uint64
	err := testtask.WaitFor(10*time.Second, func() (bool, error) {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/syscall", pid, e.waiter))
		args = args[:0]
		for _, f := range strings.Fields(string(b)) {
			v, bad := strconv.ParseUint(f, 0, 64)
			if bad != nil {
				return false, nil
			}
			args = append(args, v)
		}
		return len(args) == 9 && args[0] == nr, err
	})
	if err != nil {
		t.Fatalf("%s: thread %d does not sleep in futex: %v: %v", e.name, e.waiter, err, args)
	}
	f := &kcdata.LinuxFutex{Addr: args[1], Op: uint32(args[2]) & 0x7f, Expected: uint32(args[3])}
	if args[2]&128 != 0 {
		f.Flags |= kcdata.FutexPrivate
	}
	if args[4] != 0 {
		f.Flags |= kcdata.FutexTimed
	}
	if f.Op == opLockPI || f.Op == opLockPI2 {
		f.Flags |= kcdata.FutexPI
	}
	mem, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		t.Fatal(err)
	}
	defer mem.Close()
	for i := range 10 {
		if _, err := mem.ReadAt(f.Around[4*i:4*i+4], int64(f.Addr)-before+int64(4*i)); err == nil {
			f.Have |= 1 << i
		}
	}
	return f
}

// tableOf is a process as a capture has it, among others that carry no such number.
func tableOf(t *testing.T, pid int) (*Table, map[int]int) {
	t.Helper()
	dir, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		t.Fatal(err)
	}
	table, at := new(Table), map[int]int{}
	for _, e := range dir {
		tid, _ := strconv.Atoi(e.Name())
		at[tid] = table.Add(Thread{Tid: uint32(tid), Tgid: uint32(pid), Start: uint64(1000 + tid)}, nil)
	}
	return table, at
}

// Real locks of glibc and musl, read from real threads that wait for them: what they are, and
// who has them. gdb is the witness of __owner.
func TestRealLocks(t *testing.T) {
	testneed.Lab(t, testneed.Witness)
	testneed.Slow(t)
	for _, compile := range [][]string{{"gcc", "-O2"}, {"gcc", "-O2", "-static"}, {"musl-gcc", "-O2", "-static"}} {
		t.Run(strings.Join(compile, " "), func(t *testing.T) {
			pid, all := library(t, compile...)
			if len(all) < 30 {
				t.Fatalf("%d locks", len(all))
			}
			table, at := tableOf(t, pid)
			var records []*kcdata.LinuxFutex // before gdb stops them all
			for _, e := range all {
				records = append(records, futexOf(t, pid, e))
			}
			witness := owners(t, compile[0] == "gcc", pid, all)
			for i, e := range all {
				f := resolve(table, records[i], at[e.waiter], noMemory{})
				if f.Object != e.object || f.OwnerTid != e.owner {
					t.Errorf("%s: object %d, owner %d, flags %#x; want %d, %d: %+v", e.name, f.Object, f.OwnerTid, f.Flags, e.object, e.owner, f)
				}
				if (f.Flags&found == kcdata.FutexOwned) != (e.owner != 0) || e.owner == 0 && f.Flags&found != 0 {
					t.Errorf("%s: flags %#x", e.name, f.Flags)
				}
				if w, ok := witness[e.name]; ok && w != int64(e.owner) {
					t.Errorf("%s: owner %d; gdb says %d", e.name, e.owner, w)
				}
			}
		})
	}
}

// owners are the __owner of all mutexes of a program of glibc, by gdb, in its own words.
func owners(t *testing.T, glibc bool, pid int, all []expected) map[string]int64 {
	t.Helper()
	if !glibc || !testneed.Have(t, "gdb") {
		return nil
	}
	args := []string{"-batch", "-nx", "-p", strconv.Itoa(pid)}
	var names []string
	for _, e := range all {
		if e.lock == 0 || e.object != kcdata.FutexGlibcMutex || e.name == "robust-inconsistent" { // there it is no number
			continue
		}
		names = append(names, e.name)
		args = append(args, "-ex", fmt.Sprintf("printf \"owner %%d\\n\", ((pthread_mutex_t *)%#x)->__data.__owner", e.lock))
	}
	out, err := exec.Command("gdb", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("gdb: %v: %s", err, out)
	}
	found := map[string]int64{}
	for line := range strings.Lines(string(out)) {
		if s, ok := strings.CutPrefix(strings.TrimSpace(line), "owner "); ok && len(found) < len(names) {
			found[names[len(found)]], _ = strconv.ParseInt(s, 10, 64)
		}
	}
	if len(found) != len(names) || len(names) < 10 {
		t.Fatalf("gdb told %d of %d owners: %s", len(found), len(names), out)
	}
	return found
}
