package snapshot

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"stackshot/internal/bpf/bpftest"
	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
	"stackshot/internal/userlab"
	"stackshot/kcdata"
)

// A process that a control group has frozen says so in the window; who waits for it does
// not, nor do others that sleep as if frozen: stopped, traced, in vfork.
func TestFrozenInTheWindow(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	requireBPF(t)
	h := userlab.NewHangs(t).Start(t, userlab.Glibc, "holder")
	h.Freeze("holder")
	f := testtask.Start(t, testtask.Stopped, testtask.TracedExit, testtask.VforkParent)
	for _, engineName := range userEngines() {
		got := windowOf(t, engineName, Options{}, bpftest.Knobs{}, nil)
		want := map[int]bool{h.Parts["holder"].Tid: true, h.Parts["waiter"].Tid: false}
		for _, pid := range pidsOf(f) {
			want[pid] = false
		}
		for tid, frozen := range want {
			th := got[uint64(tid)]
			if th == nil {
				t.Fatalf("%s: no thread %d", engineName, tid)
			}
			if is := th.Wait != nil && th.Wait.Flags&kcdata.WaitFrozen != 0; is != frozen {
				t.Errorf("%s: %s %d: frozen %v, record %+v", engineName, th.Name, tid, is, th.Wait)
			}
		}
	}
}

// Who waits for I/O says so in the window, and on the whole machine they are as many as
// the kernel counts (procs_blocked).
func TestIOWaitInTheWindow(t *testing.T) {
	testneed.Lab(t, testneed.Machine)
	requireBPF(t)
	tid := ringWaiter(t)
	f := testtask.Start(t, testtask.PipeRead, testtask.MutexWait)
	for _, engineName := range userEngines() {
		for try := 1; ; try++ {
			before := blockedProcs(t)
			got := windowOf(t, engineName, Options{UserStacks: UserStacksOff}, bpftest.Knobs{}, nil)
			after, n := blockedProcs(t), 0
			ours := map[uint64]bool{uint64(tid): true}
			for _, pid := range pidsOf(f) {
				ours[uint64(pid)] = true
			}
			for id, th := range got {
				io := th.Wait != nil && th.Wait.Flags&kcdata.WaitIO != 0
				if io {
					n++
				}
				if ours[id] && io != (id == uint64(tid)) {
					t.Errorf("%s: %s %d: waits for I/O %v, record %+v", engineName, th.Name, id, io, th.Wait)
				}
			}
			if before == after && n == before || t.Failed() {
				break
			}
			if try == 20 {
				t.Errorf("%s: %d threads wait for I/O, the kernel counts %d, then %d", engineName, n, before, after)
				break
			}
		}
	}
}

func blockedProcs(t *testing.T) int {
	t.Helper()
	_, rest, _ := strings.Cut(slurp(t, "/proc/stat"), "\nprocs_blocked ")
	line, _, _ := strings.Cut(rest, "\n")
	n, err := strconv.Atoi(line)
	if err != nil {
		t.Fatalf("procs_blocked: %v", err)
	}
	return n
}

// Parts of struct io_uring_params and struct io_uring_sqe (include/uapi/linux/io_uring.h).
type ringParams struct {
	_     [8]uint32
	_     [2]uint32
	sqOff struct {
		head, tail, mask, entries, flags, dropped, array, _ uint32
		_                                                   uint64
	}
	_ [40]byte
}

type ringEntry struct {
	op   uint8
	_    [3]byte
	fd   int32
	_    uint64
	addr uint64
	len  uint32
	_    [28]byte
	_    uint64
}

const (
	ringEntries   = 0x10000000 // IORING_OFF_SQES
	ringRead      = 22         // IORING_OP_READ
	ringGetEvents = 1          // IORING_ENTER_GETEVENTS
)

// ringWaiter is a thread of this process that waits for the end of a read, of an empty pipe,
// by io_uring: for the kernel it waits for I/O (io_cqring_wait). It ends with the test.
func ringWaiter(t *testing.T) (tid int) {
	t.Helper()
	var p ringParams
	fd, _, e := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&p)), 0)
	if e != 0 {
		testneed.Lacking(t, "needs io_uring: %v", e)
	}
	t.Cleanup(func() { unix.Close(int(fd)) })
	ring, err := unix.Mmap(int(fd), 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := unix.Mmap(int(fd), ringEntries, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		t.Fatal(err)
	}
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	to := anonymous(t, 4096)
	*(*ringEntry)(unsafe.Pointer(&entries[0])) = ringEntry{op: ringRead, fd: int32(pipe[0]), addr: uint64(uintptr(unsafe.Pointer(&to[0]))), len: 1}
	*(*uint32)(unsafe.Pointer(&ring[p.sqOff.array])) = 0
	*(*uint32)(unsafe.Pointer(&ring[p.sqOff.tail])) = 1
	started, ended := make(chan int), make(chan unix.Errno, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		started <- unix.Gettid()
		_, _, e := unix.Syscall6(unix.SYS_IO_URING_ENTER, fd, 1, 1, ringGetEvents, 0, 0)
		ended <- e
	}()
	tid = <-started
	t.Cleanup(func() {
		unix.Close(pipe[1]) // the end of the file ends the read
		if e := <-ended; e != 0 {
			t.Errorf("io_uring_enter: %v", e)
		}
		unix.Close(pipe[0])
	})
	err = testtask.WaitFor(slow(5*time.Second), func() (bool, error) { return sleepsIn(tid, unix.SYS_IO_URING_ENTER), nil })
	if err != nil {
		t.Fatal(err)
	}
	return tid
}
