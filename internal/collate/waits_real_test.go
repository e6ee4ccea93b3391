package collate

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"stackshot/internal/procfs"
	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
	"stackshot/kcdata"
)

// Real processes that share memory, some in a pid namespace of their own, with the bytes that
// their own C library wrote and the mappings that /proc has: the owner is the thread with that number
// in the waiter's namespace, never the machine's number 1, which is in the capture, too.
func TestOwnersInSharedMemory(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	testneed.Root(t)
	testneed.Program(t, "gcc")
	prog := filepath.Join(t.TempDir(), "shared")
	if out, err := exec.Command("gcc", "-O2", "-o", prog, "testdata/shared.c", "-pthread").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	c := exec.Command(prog)
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Process.Kill(); c.Wait() })
	pid := map[string]int{}
	for lines := bufio.NewScanner(out); pid["ready"] == 0 && lines.Scan(); {
		name, n, _ := strings.Cut(lines.Text(), " ")
		pid[name], _ = strconv.Atoi(n)
		if name == "ready" {
			break
		}
	}
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid["first"], pid["first"]))
	if pid["second"], _ = strconv.Atoi(strings.TrimSpace(string(children))); err != nil || pid["second"] == 0 {
		t.Fatalf("%v: %q: %v", err, children, pid)
	}
	var tasks [][]waiter
	start := map[int]uint64{}
	for _, p := range []int{1, pid["owner"], pid["waiter"], pid["outside"], pid["first"], pid["second"]} {
		w := waiter{tid: uint32(p), ns: numbersOf(t, p)}
		if p == pid["waiter"] || p == pid["outside"] || p == pid["second"] {
			w.futexes = []kcdata.LinuxFutex{futexOf(t, p)}
		}
		st, err := procfs.FS{}.Stat(p)
		if err != nil {
			t.Fatal(err)
		}
		start[p] = st.StartTime * 1e7
		tasks = append(tasks, []waiter{w})
	}
	for _, redact := range []bool{false, true} {
		raw := madeUp(t, redact, tasks...)
		for i := range tasks { // the real start of each
			startAt(t, raw.Recorded[i].Pieces[0], start[int(tasks[i][0].tid)])
		}
		s, _ := collated(t, procfs.FS{}, raw)
		for name, want := range map[string][2]uint32{
			"waiter":  {uint32(pid["owner"]), kcdata.FutexOwned},
			"second":  {uint32(pid["first"]), kcdata.FutexOwned},
			"outside": {0, kcdata.FutexOwnerUnsure}, // 1 is the machine's first process, and not it
		} {
			f := threadOf(t, s, uint64(pid[name])).Futexes[0]
			if got := [2]uint32{f.OwnerTid, f.Flags}; got != want || f.Object != kcdata.FutexGlibcMutex {
				t.Errorf("redacted %v, %s: %v, want %v: %+v; %v", redact, name, got, want, f, pid)
			}
		}
	}
}

// startAt patches the start of the task and its thread.
func startAt(t *testing.T, b []byte, ns uint64) {
	t.Helper()
	e := kcdata.NewEditor(b)
	for it, err := range e.Items() {
		switch {
		case err != nil:
			t.Fatal(err)
		case it.Type == kcdata.TypeLinuxTask:
			err = kcdata.Patch(it.Position(), func(r *kcdata.LinuxTask) { r.StartBoottime = ns })
		case it.Type == kcdata.TypeLinuxThread:
			err = kcdata.Patch(it.Position(), func(r *kcdata.LinuxThread) { r.StartBoottime = ns })
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// numbersOf are a process's numbers below our namespace, of which there is one at most here.
func numbersOf(t *testing.T, pid int) []kcdata.LinuxThreadNS {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, line, _ := strings.Cut(string(b), "\nNSpid:")
	line, _, _ = strings.Cut(line, "\n")
	numbers := strings.Fields(line)
	if len(numbers) < 2 {
		return nil
	}
	link, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", pid))
	var inode, tid uint32
	if _, err2 := fmt.Sscanf(link, "pid:[%d]", &inode); err != nil || err2 != nil {
		t.Fatal(link, err, err2)
	}
	fmt.Sscan(numbers[len(numbers)-1], &tid)
	return []kcdata.LinuxThreadNS{{Inode: inode, Tid: tid}}
}

// futexOf is the word that a process waits for, as the window would record it, without its place.
func futexOf(t *testing.T, pid int) kcdata.LinuxFutex {
	t.Helper()
	var nr, op uint64
	var f kcdata.LinuxFutex
	err := testtask.WaitFor(10*time.Second, func() (bool, error) {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/syscall", pid))
		n, _ := fmt.Sscanf(string(b), "%d %v %v %v", &nr, &f.Addr, &op, &f.Expected)
		return n == 4 && (nr == 202 || nr == 98), err
	})
	if err != nil {
		t.Fatalf("%d does not sleep in futex: %v", pid, err)
	}
	if op&128 != 0 {
		f.Flags = kcdata.FutexPrivate
	}
	mem, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		t.Fatal(err)
	}
	defer mem.Close()
	for i := range 10 {
		if _, err := mem.ReadAt(f.Around[4*i:4*i+4], int64(f.Addr)-16+int64(4*i)); err == nil {
			f.Have |= 1 << i
		}
	}
	return f
}
