package snapshot

import (
	"bytes"
	"errors"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"stackshot/internal/engine"
	"stackshot/internal/engine/stop"
	"stackshot/internal/engine/trap"
	"stackshot/internal/procfs"
	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
)

// Captures in a loop, of this process and each fifth of the whole machine,
// leave no file, no BPF object, no memory and no word of the kernel's behind.
// 50; 500 where tests are long; STACKSHOT_CAPTURES says another number (make long).
func TestTrapLoopLeavesNothing(t *testing.T) {
	testneed.Lab(t, testneed.Memory)
	testneed.Slow(t)
	n := testneed.Length(50, 500)
	if asked := os.Getenv("STACKSHOT_CAPTURES"); asked != "" {
		var err error
		if n, err = strconv.Atoi(asked); err != nil {
			t.Fatal(err)
		}
	}
	s, _ := trapSession(t, Options{})
	log := openKernelLog(t)
	loop(t, s, 101) // what grows once, has grown
	log.new(t)
	before := holdings(t)
	began := time.Now()
	aborted := loop(t, s, n)
	after := holdings(t)
	t.Logf("%d captures in %v, %d of them aborted; before %+v, after %+v", n, time.Since(began), aborted, before, after)
	if after.files > before.files || after.maps > before.maps+2 || after.programs > before.programs+2 || after.threads > before.threads+8 {
		t.Errorf("before %d captures %+v, after %+v", n, before, after)
	}
	if grown := after.resident - before.resident; grown > 16<<20 {
		t.Errorf("%d bytes more are resident", grown)
	}
	for _, line := range log.new(t) {
		if suspicious(line) {
			t.Errorf("the kernel says: %s", line)
		}
	}
}

// loop makes n captures, and says how many were given up: on a shared machine
// the host may keep a CPU away.
func loop(t *testing.T, s *Session, n int) (aborted int) {
	t.Helper()
	for i := range n {
		var r Request
		if i%5 != 0 {
			r.Pids = []int{os.Getpid()}
		}
		var file bytes.Buffer
		r.Output = &file
		res, err := s.Take(t.Context(), r)
		if errors.Is(err, engine.ErrNotStopped) {
			aborted++
			continue
		}
		if err != nil {
			t.Fatalf("capture %d: %v", i, err)
		}
		if res.Tasks == 0 && len(res.LeftOut) == 0 {
			t.Errorf("capture %d has nothing: %+v", i, res)
		}
	}
	return aborted
}

// holding is what this process keeps; of BPF objects, ours.
type holding struct{ files, maps, programs, threads, resident int }

func holdings(t *testing.T) holding {
	t.Helper()
	debug.FreeOSMemory() // what is free and not given back is held by nobody
	st, err := procfs.FS{}.Status(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	h := holding{files: len(openLinks(t)), threads: threadCount(t), resident: int(st.VmRSS)}
	for _, to := range openLinks(t) {
		h.maps += flagInt(strings.Contains(to, "bpf-map"))
		h.programs += flagInt(strings.Contains(to, "bpf-prog"))
	}
	return h
}

func openFiles(tb testing.TB) int {
	tb.Helper()
	n := 0
	for fd := range 4096 {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil {
			n++
		}
	}
	return n
}

// openLinks are the targets of /proc/self/fd.
func openLinks(t *testing.T) (out []string) {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil { // not the list's own
			out = append(out, to)
		}
	}
	return out
}

// A session that is closed leaves no worker and no thread of real-time priority, no file, and of
// what the loader made nothing in the kernel, whatever its engine and the files that it met. The
// process's first thread, which cannot end, is no worker.
func TestClosedSessionLeavesNothing(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	requireBPF(t)
	if err := closePool(); err != nil { // their workers are of real-time priority
		t.Fatal(err)
	}
	pids := []int{os.Getpid(), startLoadChild(t, "own"), startLoadChild(t, "fifo")}
	threads := 0
	for _, name := range append(userEngines(), EngineProcfs) {
		files := 0
		for round := range testneed.Length(3, 20) {
			s := ownSession(t, Options{Engine: name})
			captureOnce(t, s, Request{Pids: pids})
			if s.sampler == nil || len(s.sampler.Events) == 0 {
				t.Fatalf("%s: no events", name)
			}
			var made []ebpf.MapID
			if e, is := s.engine.(*trap.Engine); is {
				if made = ours(t, e); len(made) < 5 {
					t.Fatalf("the session has %d maps", len(made))
				}
			}
			team := s.team
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Take(t.Context(), Request{}); !errors.Is(err, ErrClosed) {
				t.Errorf("%s: Take after Close: %v", name, err)
			}
			if team != nil {
				wantEnded(t, team)
			}
			wantGone(t, made)
			if threads == 0 {
				threads = threadCount(t) // the runtime's own
			}
			if now := openFiles(t); round == 0 {
				files = now // what is opened once per process
			} else if now > files {
				t.Errorf("%s: %d open files after session %d, %d after the first", name, now, round+1, files)
			}
		}
	}
	after := 0
	err := testtask.WaitFor(testneed.Patience, func() (bool, error) {
		after = threadCount(t)
		return after <= threads+8, nil // the runtime may want some more
	})
	if err != nil {
		t.Errorf("%d threads after the first session, %d after the last", threads, after)
	}
}

func wantEnded(t *testing.T, team *stop.Team) {
	t.Helper()
	for _, w := range team.Workers {
		if w.Tid == os.Getpid() || stop.ThreadExists(w.Tid) {
			t.Errorf("the worker of CPU %d, thread %d, is still there, or the first thread", w.CPU, w.Tid)
		}
	}
	tids, err := procfs.FS{}.Threads(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for _, tid := range tids {
		if attr, err := unix.SchedGetAttr(tid, 0); err == nil && attr.Policy != unix.SCHED_NORMAL {
			t.Errorf("thread %d has policy %d and priority %d after Close", tid, attr.Policy, attr.Priority)
		}
	}
}

// wantGone: maps that this process made are kept alive by nobody. The kernel frees them after a
// grace period, and the collector unmaps the loader's own view of constants.
func wantGone(t *testing.T, maps []ebpf.MapID) {
	t.Helper()
	err := testtask.WaitFor(testneed.Patience, func() (bool, error) {
		runtime.GC()
		now := mapIDs(t)
		return !slices.ContainsFunc(maps, func(id ebpf.MapID) bool { return now[id] }), nil
	})
	if err != nil {
		t.Errorf("maps of %v are still there", maps)
	}
}

func mapIDs(t *testing.T) map[ebpf.MapID]bool {
	t.Helper()
	out := map[ebpf.MapID]bool{}
	for id, err := ebpf.MapGetNextID(0); err == nil; id, err = ebpf.MapGetNextID(id) {
		out[id] = true
	}
	return out
}

// ours are the maps of the trap's program.
func ours(t *testing.T, e *trap.Engine) []ebpf.MapID {
	t.Helper()
	info, err := e.Loaded.Program.Info()
	if err != nil {
		t.Fatal(err)
	}
	ids, ok := info.MapIDs()
	if !ok {
		t.Fatal("this kernel does not tell a program's maps")
	}
	return ids
}

// kernelLog reads what the kernel says from now on.
type kernelLog struct{ fd int }

func openKernelLog(t *testing.T) *kernelLog {
	t.Helper()
	fd, err := unix.Open("/dev/kmsg", unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	unix.Seek(fd, 0, unix.SEEK_END)
	t.Cleanup(func() { unix.Close(fd) })
	return &kernelLog{fd}
}

func (l *kernelLog) new(t *testing.T) (lines []string) {
	t.Helper()
	buf := make([]byte, 8192)
	for {
		n, err := unix.Read(l.fd, buf)
		switch {
		case errors.Is(err, unix.EPIPE): // overwritten: the next read goes on after it
		case err != nil || n <= 0:
			return lines
		default:
			_, text, _ := strings.Cut(string(buf[:n]), ";")
			lines = append(lines, text)
		}
	}
}

// suspicious picks complaints out of what other work on the machine makes the
// kernel say.
func suspicious(line string) bool {
	for _, w := range []string{"BUG", "WARNING", "lockup", "stall", "hung", "RCU", "rcu", "Oops", "RT throttling", "bpf", "took too long", "scheduling while atomic", "unsafe"} {
		if strings.Contains(line, w) {
			return true
		}
	}
	return false
}
