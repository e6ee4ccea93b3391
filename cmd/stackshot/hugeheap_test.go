package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"stackshot/internal/limits"
	"stackshot/internal/testneed"
)

var kept [][]byte

// hugeVar is set where TestHugeHeap has a process to itself, without the free places that other tests
// leave in the heap.
const hugeVar = "STACKSHOT_TEST_HUGE_HEAP"

// What is allocated after hugeHeap lies in memory for which huge pages are wanted.
func TestHugeHeap(t *testing.T) {
	testneed.Lab(t, testneed.Memory)
	const n = 64 << 20
	if os.Getenv(hugeVar) == "" {
		cmd := exec.Command(os.Args[0], "-test.run", "^TestHugeHeap$")
		cmd.Env = append(os.Environ(), hugeVar+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
		return
	}
	if hugeHeap(leastHuge - 1) {
		t.Error("for a small heap")
	}
	if hugeHeap(1 << 50) {
		t.Error("for more than there is")
	}
	if _, err := os.Stat("/sys/kernel/mm/transparent_hugepage"); errors.Is(err, os.ErrNotExist) {
		return // this kernel has none
	}
	if (limits.Machine{}).Memory().Free < spare*n || limited(unix.RLIMIT_AS) || limited(unix.RLIMIT_DATA) {
		return // a small machine, or one with bounds: the tests above and below
	}
	if !hugeHeap(n) {
		t.Fatal("not where memory is ample")
	}
	defer func() { kept = nil }()
	huge := 0
	for range 16 {
		b := make([]byte, 1<<20)
		kept = append(kept, b)
		if strings.Contains(vmFlags(t, uintptr(unsafe.Pointer(unsafe.SliceData(b)))), " hg") {
			huge++
		}
	}
	if huge < 8 {
		t.Errorf("%d of 16 MiB", huge)
	}
}

// A bound on the address space, which the runtime cannot survive, is not tempted.
func TestHugeHeapUnderLimit(t *testing.T) {
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_DATA, &was); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_DATA, &unix.Rlimit{Cur: 8 << 30, Max: was.Max}); err != nil {
		t.Fatal(err)
	}
	defer unix.Setrlimit(unix.RLIMIT_DATA, &was)
	if hugeHeap(leastHuge) {
		t.Error("under RLIMIT_DATA")
	}
}

// vmFlags are those of the mapping of this process that holds an address, by smaps.
func vmFlags(t *testing.T, addr uintptr) string {
	t.Helper()
	text := read(t, "/proc/self/smaps")
	inside := false
	for line := range strings.Lines(string(text)) {
		var start, end uintptr
		if n, _ := fmt.Sscanf(line, "%x-%x ", &start, &end); n == 2 {
			inside = addr >= start && addr < end
		}
		if flags, ok := strings.CutPrefix(line, "VmFlags:"); ok && inside {
			return flags
		}
	}
	t.Fatalf("no mapping has %#x", addr)
	return ""
}
