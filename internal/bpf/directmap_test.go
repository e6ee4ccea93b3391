package bpf

import (
	"encoding/binary"
	"errors"
	"os"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"stackshot/internal/testneed"
)

// The map that this machine's kernel has is found, and the programs' own walk
// yields what stands in pages of every kind: small, of a huge page, on the heap,
// of a file, on this thread's stack. What is not there is absent, what may not be
// read is refused.
func TestDirectMapOfThisMachine(t *testing.T) {
	testneed.Live(t)
	m := directMapHere(t)
	k, err := newAsker("walk_pages", m)
	if err != nil {
		t.Fatal(err)
	}
	defer k.close()
	pages := map[string]uint64{}
	for name, at := range kindsOfPage(t) {
		binary.NativeEndian.PutUint64(at, 0x1122334455667700+uint64(len(name)))
		pages[name] = addrOf(at)
	}
	for name, addr := range pages {
		got := walked(t, k, addr)
		if got != (word{value: 0x1122334455667700 + uint64(len(name))}) {
			t.Errorf("%s at %#x: %#x, reason %d", name, addr, got.value, got.why)
		}
	}
	size := os.Getpagesize()
	mem := mapped(t, 3*size, unix.PROT_READ|unix.PROT_WRITE)
	mem[0], mem[size] = 1, 1
	if err := unix.Mprotect(mem[size:2*size], unix.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		addr uint64
		why  uint32
	}{
		"PROT_NONE": {addrOf(mem[size:]), pageRefused}, "never touched": {addrOf(mem[2*size:]), pageNone},
		"kernel": {m.Base, pageRefused}, "the last address": {^uint64(7), pageRefused}, "page 0": {0, pageNone},
	} {
		if got := walked(t, k, c.addr); got.why != c.why || got.value != 0 {
			t.Errorf("%s at %#x: %#x, reason %d, want %d", name, c.addr, got.value, got.why, c.why)
		}
	}
}

// A page that lies outside the ranges of System RAM is refused, whatever is there.
func TestWalkRefusesWhatIsNotRAM(t *testing.T) {
	testneed.Live(t)
	m := *directMapHere(t)
	at := mapped(t, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE)
	at[0] = 1
	frame, err := pagemap("/proc/self/pagemap")(addrOf(at))
	if err != nil {
		t.Fatal(err)
	}
	m.RAM = without(m.RAM, frame<<pageShift())
	k, err := newAsker("walk_pages", &m)
	if err != nil {
		t.Fatal(err)
	}
	defer k.close()
	if got := walked(t, k, addrOf(at)); got.why != pageRefused {
		t.Errorf("frame %#x, which is in none of %x: %#x, reason %d", frame, m.RAM, got.value, got.why)
	}
}

// without cuts one page out of a list of ranges.
func without(list []RAMRange, pa uint64) (out []RAMRange) {
	for _, r := range list {
		if pa < r.Start || pa >= r.End {
			out = append(out, r)
			continue
		}
		out = append(out, RAMRange{r.Start, pa}, RAMRange{pa + uint64(os.Getpagesize()), r.End})
	}
	return out
}

func directMapHere(t testing.TB) *DirectMap {
	t.Helper()
	m, err := FindDirectMap()
	if err != nil && !testneed.All() && (unix.Geteuid() != 0 || errors.Is(err, errHidden) || errors.Is(err, errNoFrame)) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// walked asks for one address, which the caller keeps in place.
func walked(t *testing.T, k *asker, addr uint64) word {
	t.Helper()
	got, err := k.words([]uint64{addr})
	if err != nil {
		t.Fatal(err)
	}
	return got[0]
}

func kindsOfPage(t *testing.T) map[string][]byte {
	t.Helper()
	heap := make([]byte, 1<<20)
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := file.Truncate(4096); err != nil {
		t.Fatal(err)
	}
	shared, err := unix.Mmap(int(file.Fd()), 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Munmap(shared) })
	t.Cleanup(func() { heap[0] = 0 })
	return map[string][]byte{
		"small": mapped(t, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE), "heap": heap[512<<10:], "shared file": shared[4088:],
		"huge, its middle": huge(t)[1<<20+8:],
	}
}

// huge is a huge page, where the machine has one to give.
func huge(t *testing.T) []byte {
	t.Helper()
	const size = 2 << 20
	mem := mapped(t, 2*size, unix.PROT_READ|unix.PROT_WRITE)
	mem = mem[-addrOf(mem)%size:][:size]
	if err := unix.Madvise(mem, unix.MADV_HUGEPAGE); err != nil {
		t.Logf("no huge pages: %v", err)
	}
	for i := range mem {
		mem[i] = 1
	}
	return mem
}

func mapped(t *testing.T, n, prot int) []byte {
	t.Helper()
	mem, err := unix.Mmap(-1, 0, n, prot, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Munmap(mem) })
	return mem
}

func addrOf(b []byte) uint64 { return uint64(uintptr(unsafe.Pointer(&b[0]))) }
