//go:build linux

package testfiles

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	planVar = "STACKSHOT_TESTFILES"
	ready   = "ready"
)

// plan is what a process of the fixture does: it takes locks, then each call waits in a
// thread of its own.
type plan struct {
	Locks []lock `json:",omitempty"`
	Calls []call `json:",omitempty"`
}

// lock is taken, or waited for, by one of the calls that lock files.
type lock struct {
	How   string // flock, posix, ofd, lease
	Fd    int
	Start int64 // one byte from here; not of flock and lease
}

// call is one that returns only if a test makes it.
type call struct {
	Name string
	How  string // a key of numbers
	Fds  []int
	Lock lock   `json:",omitzero"`
	Path string `json:",omitempty"`
}

// numbers are the system calls, the same on amd64 and arm64 in name.
var numbers = map[string]int{
	"read": unix.SYS_READ, "write": unix.SYS_WRITE, "recv": unix.SYS_RECVFROM, "accept": unix.SYS_ACCEPT4,
	"poll": unix.SYS_PPOLL, "select": unix.SYS_PSELECT6, "epoll": unix.SYS_EPOLL_PWAIT, "open": unix.SYS_OPENAT,
	"flock": unix.SYS_FLOCK, "posix": unix.SYS_FCNTL, "ofd": unix.SYS_FCNTL,
}

// MaybeRun is the whole of a process of the fixture, and returns in any other.
func MaybeRun() {
	text, ours := os.LookupEnv(planVar)
	if !ours {
		return
	}
	runtime.LockOSThread() // what share makes ends with this thread
	var p plan
	err := json.Unmarshal([]byte(text), &p)
	for _, l := range p.Locks {
		if err == nil {
			err = l.take(false)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "testfiles:", err)
		os.Exit(1)
	}
	var out sync.Mutex
	var begun sync.WaitGroup
	for _, c := range p.Calls {
		begun.Add(1)
		go func() {
			runtime.LockOSThread()
			out.Lock()
			fmt.Println(c.Name, unix.Gettid())
			out.Unlock()
			begun.Done()
			c.wait()
			select {} // somebody ended it: whoever starts the fixture waits for the call
		}()
	}
	begun.Wait()
	fmt.Println(ready)
	serve(os.Stdin)
}

// wait makes the call. Syscall, not RawSyscall: the others must run on.
func (c call) wait() error {
	var buf [128]byte // a signalfd wants so many
	fd, at := uintptr(0), uintptr(unsafe.Pointer(&buf))
	if len(c.Fds) > 0 {
		fd = uintptr(c.Fds[0])
	}
	var e unix.Errno
	switch c.How {
	case "read", "write":
		_, _, e = unix.Syscall(uintptr(numbers[c.How]), fd, at, uintptr(len(buf)))
	case "recv":
		_, _, e = unix.Syscall6(unix.SYS_RECVFROM, fd, at, uintptr(len(buf)), 0, 0, 0)
	case "accept":
		_, _, e = unix.Syscall6(unix.SYS_ACCEPT4, fd, 0, 0, 0, 0, 0)
	case "poll":
		return c.poll()
	case "select":
		var set unix.FdSet
		for _, fd := range c.Fds {
			set.Set(fd)
		}
		_, _, e = unix.Syscall6(unix.SYS_PSELECT6, 1024, uintptr(unsafe.Pointer(&set)), 0, 0, 0, 0)
	case "epoll":
		for _, fd := range c.Fds[1:] { // by this process: a set keeps the numbers of who adds
			if err := unix.EpollCtl(c.Fds[0], unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}); err != nil {
				return err
			}
		}
		var event unix.EpollEvent
		_, _, e = unix.Syscall6(unix.SYS_EPOLL_PWAIT, fd, uintptr(unsafe.Pointer(&event)), 1, ^uintptr(0), 0, 0)
	case "open":
		_, err := unix.Open(c.Path, unix.O_RDONLY, 0)
		return err
	default:
		return c.Lock.take(true)
	}
	return e
}

func (c call) poll() error {
	var set []unix.PollFd
	for _, fd := range c.Fds {
		set = append(set, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
	}
	_, _, e := unix.Syscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&set[0])), uintptr(len(set)), 0, 0, 0, 0)
	return e
}

// take locks, and waits for that or fails.
func (l lock) take(wait bool) error {
	flag, cmd := unix.LOCK_NB, map[string]int{"posix": unix.F_SETLK, "ofd": unix.F_OFD_SETLK}[l.How]
	if wait {
		flag, cmd = 0, map[string]int{"posix": unix.F_SETLKW, "ofd": unix.F_OFD_SETLKW}[l.How]
	}
	var err error
	switch l.How {
	case "flock":
		err = unix.Flock(l.Fd, unix.LOCK_EX|flag)
	case "lease":
		_, err = unix.FcntlInt(uintptr(l.Fd), unix.F_SETLEASE, unix.F_RDLCK)
	case "posix", "ofd":
		err = unix.FcntlFlock(uintptr(l.Fd), cmd, &unix.Flock_t{Type: unix.F_WRLCK, Start: l.Start, Len: 1})
	default:
		err = fmt.Errorf("no lock is called %q", l.How)
	}
	if err != nil {
		return fmt.Errorf("%s of descriptor %d: %w", l.How, l.Fd, err)
	}
	return nil
}
