package urgency

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"stackshot/internal/clock"
)

// above is the keeper's schedule.
var above = schedule{unix.SCHED_RR, Priority + 1}

// keeper ends a budget (doc.go).
var keeper keep

// keep is what the keeper shares with Begin and End. The keeper's loads and stores have no order
// among each other.
type keep struct {
	started bool  // with process locked: there is a thread
	until   int64 // by set: cpuTime at which the budget is spent; 0: nothing is urgent
	wake    int   // an eventfd; by prepare
	state   int32 // by the keeper: 0, then keeping, or the negative errno that ended it
	cpus    int64 // of this process; constant once started
	pass    pass  // the keeper's
}

const keeping = 1

// startTime is how long Begin waits for the keeper. Meanwhile RLIMIT_RTTIME alone guards.
var startTime = time.Second

// start has the keeper at its priority, or says why it cannot be. process is locked, and prepared.
func (k *keep) start() error {
	if !k.started {
		k.cpus, k.started = int64(runtime.NumCPU()), true
		go func() {
			runtime.LockOSThread()
			k.run()
		}()
	}
	for last := time.Now().Add(startTime); ; clock.Nap(50 * time.Microsecond) {
		switch state := atomic.LoadInt32(&k.state); {
		case state == keeping:
			return nil
		case state < 0: // the next Begin tries again
			k.started, k.state = false, 0
			return fmt.Errorf("the thread that would end it, at SCHED_RR %d: %w", above.priority, syscall.Errno(-state))
		case time.Now().After(last):
			return fmt.Errorf("the thread that would end it, at SCHED_RR %d, did not begin within %v", above.priority, startTime)
		}
	}
}

// set gives the keeper a new time. process is locked.
func (k *keep) set(until time.Duration) {
	atomic.StoreInt64(&k.until, int64(until))
	one := [8]byte{1}
	unix.Write(k.wake, one[:])
}

// run is the keeper. To the runtime it is one system call, which ends only if the keeper may
// not do its work.
//
//go:nosplit
//go:norace
//go:nocheckptr
//go:noinline
func (k *keep) run() {
	enterSyscallBlock()
	// Only now: a thread that the runtime made of this one would inherit it.
	errno := above.set(0)
	if errno == 0 {
		k.state = keeping
		errno = k.watch()
	}
	k.pass.changeAll(urgent, ordinary)
	ordinary.set(0) // from here on the runtime may make threads of this one
	k.state = -int32(errno)
	exitSyscall()
}

// watch lowers all threads each time that a budget is spent. It ends if a system call is refused.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (k *keep) watch() syscall.Errno {
	for {
		var errno syscall.Errno
		switch until := k.spentAt(); {
		case until == 0:
			var n uint64
			_, _, errno = syscall.RawSyscall(unix.SYS_READ, uintptr(k.wake), uintptr(unsafe.Pointer(&n)), 8)
		case cpuTime() < until:
			// All CPUs together cannot spend it before.
			errno = sleep(min(max((until-cpuTime())/time.Duration(k.cpus), soon), later))
		default:
			k.pass.change(urgent, ordinary)
			errno = sleep(again) // a thread may just be made, or End may have failed
		}
		if errno != 0 && errno != unix.EINTR {
			return errno
		}
	}
}

// Lengths of the keeper's sleeps.
const (
	soon  = 5 * time.Millisecond   // so much too much each CPU may spend
	later = 100 * time.Millisecond // the number of CPUs may have grown
	again = 20 * time.Millisecond
)

// spentAt loads until each time that it is called.
//
//go:nosplit
//go:norace
//go:noinline
func (k *keep) spentAt() time.Duration { return time.Duration(k.until) }

// sleep is clock_nanosleep(2). The clock is not that of CPU time: its timers may end only when a thread
// of ours returns to user mode, which may take long.
//
//go:nosplit
//go:norace
//go:nocheckptr
func sleep(d time.Duration) syscall.Errno {
	ts := unix.Timespec{Sec: int64(d / time.Second), Nsec: int64(d % time.Second)}
	_, _, errno := syscall.RawSyscall6(unix.SYS_CLOCK_NANOSLEEP, unix.CLOCK_MONOTONIC, 0, uintptr(unsafe.Pointer(&ts)), 0, 0, 0)
	return errno
}
