package urgency

import (
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The functions of this file need no P (doc.go): the keeper calls them too.

// schedule is the policy and the real-time priority of a thread.
type schedule struct{ policy, priority int32 }

// pass goes over the threads of this process. One thread uses it.
type pass struct {
	dir   int // /proc/self/task
	self  int // the thread that is left out; 0: none
	names [4096]byte
}

// Fields of a struct linux_dirent64 (getdents64(2)), by their offsets.
const (
	direntLength = 16 // uint16
	direntName   = 19 // ends with a zero byte
)

// changeAll makes passes until one finds no thread to change. Between two of them few threads are made.
//
//go:nosplit
//go:norace
func (p *pass) changeAll(to schedule) syscall.Errno {
	for {
		if changed, errno := p.change(to); errno != 0 || !changed {
			return errno
		}
	}
}

// becomes reports whether a thread of schedule s may be given another: each of the three that this
// package gives becomes any other, but a thread is raised only if it is urgent.
//
//go:nosplit
//go:norace
func (s schedule) becomes(to schedule) bool {
	switch to {
	case ordinary:
		return s == urgent || s == raised
	case urgent:
		return s == ordinary || s == raised
	}
	return s == urgent
}

// change gives each thread a schedule that it may have, and reports whether it found one. It fails
// at the first that may not have it. A thread that has ended is no error.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (p *pass) change(to schedule) (changed bool, errno syscall.Errno) {
	if _, _, errno = syscall.RawSyscall(unix.SYS_LSEEK, uintptr(p.dir), 0, unix.SEEK_SET); errno != 0 {
		return false, errno
	}
	for {
		n, _, errno := syscall.RawSyscall(unix.SYS_GETDENTS64, uintptr(p.dir), uintptr(unsafe.Pointer(&p.names)), uintptr(len(p.names)))
		if errno != 0 || n == 0 {
			return changed, errno
		}
		for at := 0; at+direntName < int(n); {
			tid := number(&p.names, at+direntName)
			at += int(p.names[at+direntLength]) | int(p.names[at+direntLength+1])<<8
			if tid == 0 || tid == p.self { // . and ..
				continue
			}
			if now, errno := scheduleOf(tid); errno != 0 || !now.becomes(to) {
				continue // it has ended, or is none of these
			}
			if errno := to.set(tid); errno != 0 && errno != unix.ESRCH {
				return changed, errno
			}
			changed = true
		}
	}
}

// number reads the decimal number that begins at an index; 0: none.
//
//go:nosplit
//go:norace
func number(b *[4096]byte, at int) (n int) {
	for ; at < len(b) && b[at]-'0' <= 9; at++ {
		n = 10*n + int(b[at]-'0')
	}
	return n
}

// scheduleOf is that of a thread of this process; tid 0: of the calling one.
//
//go:nosplit
//go:norace
//go:nocheckptr
func scheduleOf(tid int) (schedule, syscall.Errno) {
	policy, _, errno := syscall.RawSyscall(unix.SYS_SCHED_GETSCHEDULER, uintptr(tid), 0, 0)
	if errno != 0 {
		return schedule{}, errno
	}
	var priority int32
	_, _, errno = syscall.RawSyscall(unix.SYS_SCHED_GETPARAM, uintptr(tid), uintptr(unsafe.Pointer(&priority)), 0)
	return schedule{int32(policy) &^ schedResetOnFork, priority}, errno
}

// schedResetOnFork is SCHED_RESET_ON_FORK of sched.h.
const schedResetOnFork = 0x40000000

// set is sched_setscheduler(2), which leaves the nice value.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (s schedule) set(tid int) syscall.Errno {
	_, _, errno := syscall.RawSyscall(unix.SYS_SCHED_SETSCHEDULER, uintptr(tid), uintptr(s.policy), uintptr(unsafe.Pointer(&s.priority)))
	return errno
}

// cpuTime is the CPU time of this process, all threads together.
//
//go:nosplit
//go:norace
//go:nocheckptr
func cpuTime() time.Duration {
	var ts unix.Timespec
	syscall.RawSyscall(unix.SYS_CLOCK_GETTIME, unix.CLOCK_PROCESS_CPUTIME_ID, uintptr(unsafe.Pointer(&ts)), 0)
	return time.Duration(ts.Sec)*time.Second + time.Duration(ts.Nsec)
}
