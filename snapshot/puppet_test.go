package snapshot

import (
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"runtime"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A puppet is a process whose main thread is stopped by ptrace, with stack and
// frame pointer where the test wants them, in memory that the test writes.
type puppet struct {
	tb   testing.TB
	pid  int
	base uint64 // of its arena
	mem  *os.File
	do   chan func() // on the thread that traces it
}

// Pages of the arena.
const (
	puppetPages  = 64
	puppetClosed = 32 // PROT_NONE
	puppetAbsent = 40 // to 47: never touched
	puppetOut    = 48 // to 51: of a file, written back and put out
	puppetSecret = 56 // memfd_secret, where the kernel has it
)

const puppetEnv = "STACKSHOT_TEST_PUPPET"

// maybePuppet makes this process a puppet, if it was started as one.
func maybePuppet() {
	how := os.Getenv(puppetEnv)
	if how == "" {
		return
	}
	runtime.LockOSThread()
	page := os.Getpagesize()
	mem, err := unix.Mmap(-1, 0, puppetPages*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		panic(err)
	}
	at := func(n int) []byte { return mem[n*page:][:page] }
	unix.Madvise(mem, unix.MADV_NOHUGEPAGE)
	for n := range puppetPages {
		if n < puppetAbsent || n > puppetOut+3 {
			at(n)[0] = 0x5a
		}
	}
	if err := unix.Mprotect(at(puppetClosed), unix.PROT_NONE); err != nil {
		panic(err)
	}
	putOut(mem[puppetOut*page:][:4*page])
	secret := secretPage(at(puppetSecret))
	fmt.Printf("%#x %v\n", addrOfBytes(mem), secret)
	for how == "churn" {
		from := mem[16*page : 24*page]
		fixedMap(from, -1, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
		for i := range from {
			from[i] = 0x5a
		}
	}
	io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

func addrOfBytes(b []byte) uint64 { return uint64(uintptr(unsafe.Pointer(&b[0]))) }

// fixedMap puts another mapping in the place of b.
func fixedMap(b []byte, fd int, flags int) {
	if _, _, errno := unix.Syscall6(unix.SYS_MMAP, uintptr(addrOfBytes(b)), uintptr(len(b)),
		unix.PROT_READ|unix.PROT_WRITE, uintptr(flags|unix.MAP_FIXED), uintptr(fd), 0); errno != 0 {
		panic(errno)
	}
}

// putOut has pages of a file in the place of b, none of them mapped in any more.
func putOut(b []byte) {
	f, err := os.CreateTemp("", "stackshot-puppet")
	if err != nil {
		panic(err)
	}
	defer f.Close()
	os.Remove(f.Name())
	if err := f.Truncate(int64(len(b))); err != nil {
		panic(err)
	}
	fixedMap(b, int(f.Fd()), unix.MAP_SHARED)
	for i := range b {
		b[i] = 0x77
	}
	f.Sync()
	unix.Madvise(b, unix.MADV_PAGEOUT)
	unix.Madvise(b, unix.MADV_DONTNEED) // where it was not paged out: out of the page tables at least
}

// secretPage puts a page that not even the kernel maps in the place of b.
func secretPage(b []byte) bool {
	fd, _, errno := unix.Syscall(unix.SYS_MEMFD_SECRET, unix.O_CLOEXEC, 0, 0)
	if errno != 0 {
		return false
	}
	defer unix.Close(int(fd))
	if err := unix.Ftruncate(int(fd), int64(len(b))); err != nil {
		return false
	}
	fixedMap(b, int(fd), unix.MAP_SHARED)
	b[0] = 0x99
	return true
}

// startPuppet starts one. secret says that it has a page of memfd_secret.
func startPuppet(tb testing.TB, how string) (p *puppet, secret bool) {
	tb.Helper()
	p = &puppet{tb: tb, do: make(chan func())}
	go p.trace() // before: it is the parent's thread that ptrace knows
	p.pid = startChild(tb, again(nil, puppetEnv+"="+how), "%v %v", &p.base, &secret).pid
	tb.Cleanup(func() { close(p.do) }) // before the child is waited for: what is traced ends no sooner
	mem, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", p.pid), os.O_RDWR, 0)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { mem.Close() })
	p.mem = mem
	return p, secret
}

func (p *puppet) trace() {
	runtime.LockOSThread()
	for f := range p.do {
		f()
	}
}

func (p *puppet) on(f func() error) {
	p.tb.Helper()
	done := make(chan error)
	p.do <- func() { done <- f() }
	if err := <-done; err != nil {
		p.tb.Fatal(err)
	}
}

// Stop attaches to a thread of it and waits until it stands still.
func (p *puppet) Stop(tid int) {
	p.tb.Helper()
	p.on(func() error {
		if err := unix.PtraceAttach(tid); err != nil {
			return fmt.Errorf("attach: %w", err)
		}
		var status unix.WaitStatus
		_, err := unix.Wait4(tid, &status, unix.WALL, nil)
		return err
	})
}

// pose moves the pointers of a stopped thread.
func (p *puppet) pose(tid int, sp, fp uint64) {
	p.tb.Helper()
	p.on(func() error { return setStack(tid, sp, fp) })
}

// Write writes words into its memory.
func (p *puppet) Write(addr uint64, words ...uint64) {
	p.tb.Helper()
	var b []byte
	for _, w := range words {
		b = binary.NativeEndian.AppendUint64(b, w)
	}
	if _, err := p.mem.WriteAt(b, int64(addr)); err != nil {
		p.tb.Fatalf("write at %#x: %v", addr, err)
	}
}

func (p *puppet) page(n int) uint64 { return p.base + uint64(n*os.Getpagesize()) }

// Present says whether the page at addr is in its page tables.
func (p *puppet) Present(addr uint64) bool {
	p.tb.Helper()
	f, err := os.Open(fmt.Sprintf("/proc/%d/pagemap", p.pid))
	if err != nil {
		p.tb.Fatal(err)
	}
	defer f.Close()
	var b [8]byte
	if _, err := f.ReadAt(b[:], int64(addr/uint64(os.Getpagesize())*8)); err != nil {
		p.tb.Fatal(err)
	}
	return binary.LittleEndian.Uint64(b[:])>>63 != 0
}

// otherThread is one of its threads that is not the main one.
func (p *puppet) otherThread() int {
	p.tb.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for time.Now().Before(deadline) {
		list, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", p.pid))
		if err != nil {
			p.tb.Fatal(err)
		}
		for _, e := range list {
			var tid int
			if fmt.Sscan(e.Name(), &tid); tid != p.pid {
				return tid
			}
		}
		time.Sleep(time.Millisecond)
	}
	p.tb.Fatal("it has no other thread")
	return 0
}
