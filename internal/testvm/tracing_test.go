package testvm

import (
	"os"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

const tracingDir = "/sys/kernel/tracing/"

// checkTracing: no switch takes the lock of a list of pids. On amd64 a program comes
// to sched_switch, and goes, without an instruction of the kernel being patched.
func checkTracing(t *testing.T) {
	hooked := runtime.GOARCH == "amd64"
	want := map[string]string{"set_event_pid": "", "events/sched/sched_switch/enable": "0"}
	if hooked {
		want["events/sched/sched_switch/enable"], want["tracing_on"] = "1", "0"
	}
	for file, text := range want {
		b, err := os.ReadFile(tracingDir + file)
		if got := strings.TrimSpace(string(b)); err != nil || got != text {
			t.Errorf("%s: %q, %v, want %q", file, got, err, text)
		}
	}
	if !hooked {
		return
	}
	// The witness first: a tracepoint that nothing is hooked to, and nobody runs.
	if n := patched(t, "sched_process_hang"); n == 0 {
		t.Error("the hook of an idle tracepoint was patched in unseen")
	}
	if n := patched(t, "sched_switch"); n != 0 {
		t.Errorf("attaching to sched_switch patched %d places", n)
	}
}

// patched is how often the kernel patches its text while this thread attaches a
// program to a tracepoint and takes it off.
func patched(t *testing.T, tracepoint string) (n int) {
	t.Helper()
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type: ebpf.RawTracepoint, License: "GPL", Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer prog.Close()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	pokes := textPokes(t)
	l, err := link.AttachRawTracepoint(link.RawTracepointOptions{Name: tracepoint, Program: prog})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return pokes()
}

// What perf says of patches (include/uapi/linux/perf_event.h): "perf: Add perf text
// poke event", e17d43b93e54, in 5.9.
const (
	bitTextPoke    = 1 << 33 // of perf_event_attr's flags
	recordTextPoke = 20      // PERF_RECORD_TEXT_POKE
	ringPages      = 16
)

// textPokes counts the patches that this thread makes from here on.
func textPokes(t *testing.T) func() int {
	t.Helper()
	attr := unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_DUMMY, Bits: bitTextPoke}
	attr.Size = uint32(unsafe.Sizeof(attr))
	fd, err := unix.PerfEventOpen(&attr, 0, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	page := os.Getpagesize()
	ring, err := unix.Mmap(fd, 0, (1+ringPages)*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	return func() (n int) {
		head := (*unix.PerfEventMmapPage)(unsafe.Pointer(&ring[0])).Data_head
		if head > ringPages*uint64(page) {
			t.Fatalf("%d bytes of records do not fit", head)
		}
		for at := uint64(0); at < head; {
			h := (*struct {
				kind       uint32
				misc, size uint16
			})(unsafe.Pointer(&ring[uint64(page)+at]))
			if h.kind == recordTextPoke {
				n++
			}
			at += uint64(h.size)
		}
		unix.Munmap(ring)
		unix.Close(fd)
		return n
	}
}
