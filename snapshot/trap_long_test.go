package snapshot

import (
	"bytes"
	"errors"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"stackshot/internal/engine"
	"stackshot/internal/engine/trap"
	"stackshot/internal/procfs"
	"stackshot/internal/testneed"
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

// What the loader made is gone from the kernel when the session is closed: no
// object that this process made is kept alive by another.
func TestTrapObjectsGo(t *testing.T) {
	testneed.Lab(t, testneed.Memory)
	testneed.Slow(t)
	requireBPF(t)
	was := mapIDs(t)
	s, _ := trapSession(t, Options{})
	captureOnce(t, s, Request{})
	made := ours(t, s)
	if len(made) < 5 {
		t.Fatalf("the session has %d maps", len(made))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	var left []ebpf.MapID
	for range 100 { // the kernel frees them after a grace period
		runtime.GC() // the loader's own view of constants is unmapped by the collector
		left = left[:0]
		now := mapIDs(t)
		for _, id := range made {
			if now[id] && !was[id] {
				left = append(left, id)
			}
		}
		if len(left) == 0 {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	for _, id := range left {
		m, err := ebpf.NewMapFromID(id)
		if err != nil {
			continue // gone meanwhile
		}
		t.Errorf("map %d is still there: %v", id, m)
		m.Close()
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
func ours(t *testing.T, s *Session) []ebpf.MapID {
	t.Helper()
	info, err := s.engine.(*trap.Engine).Loaded.Program.Info()
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
