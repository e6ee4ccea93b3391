package urgency

import (
	"fmt"
	"os"
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
	started bool  // with began held: there is a thread
	until   int64 // by set: cpuTime at which the budget is spent; 0: nothing is urgent
	wake    int   // an eventfd; constant once started
	state   int32 // by the keeper: 0, then keeping, or the negative errno that ended it
	pass    pass  // the keeper's
}

const keeping = 1

// startTime is how long Begin waits for the keeper, whose thread begins at the ordinary
// priority.
const startTime = time.Second

// start has the keeper at its priority, or says why it cannot be. began is held.
func (k *keep) start() error {
	if !k.started {
		dir, err := openTasks()
		if err != nil {
			return err
		}
		if k.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC); err != nil {
			unix.Close(dir)
			return os.NewSyscallError("eventfd", err)
		}
		k.pass.dir, k.started = dir, true
		go func() {
			runtime.LockOSThread()
			k.run()
		}()
	}
	for last := time.Now().Add(startTime); ; clock.Nap(50 * time.Microsecond) {
		switch state := atomic.LoadInt32(&k.state); {
		case state == keeping:
			return nil
		case state < 0:
			return fmt.Errorf("the thread that would end it, at SCHED_RR %d: %w", above.priority, syscall.Errno(-state))
		case time.Now().After(last):
			return fmt.Errorf("the thread that would end it, at SCHED_RR %d, did not begin within %v", above.priority, startTime)
		}
	}
}

// set gives the keeper a new time. began is held.
func (k *keep) set(until time.Duration) {
	atomic.StoreInt64(&k.until, int64(until))
	one := [8]byte{1}
	unix.Write(k.wake, one[:])
}

// run is the keeper. To the runtime it is one system call, which ends only if the keeper may
// not have its priority.
//
//go:nosplit
//go:norace
//go:nocheckptr
//go:noinline
func (k *keep) run() {
	enterSyscallBlock()
	// Only now: a thread that the runtime made of this one would inherit it.
	if errno := above.set(0); errno != 0 {
		k.state = -int32(errno)
		exitSyscall()
		return
	}
	k.state = keeping
	for {
		switch until := k.spentAt(); {
		case until == 0:
			var n uint64
			syscall.RawSyscall(unix.SYS_READ, uintptr(k.wake), uintptr(unsafe.Pointer(&n)), 8)
		case cpuTime() < until:
			if sleep(unix.CLOCK_PROCESS_CPUTIME_ID, unix.TIMER_ABSTIME, until) == 0 {
				continue
			}
			sleep(unix.CLOCK_MONOTONIC, 0, again) // the kernel has no such timer
		default:
			k.pass.change(urgent, ordinary)
			sleep(unix.CLOCK_MONOTONIC, 0, again) // Begin may be under way
		}
	}
}

// again is after how long the keeper looks once more.
const again = 20 * time.Millisecond

// spentAt loads until each time that it is called.
//
//go:nosplit
//go:norace
//go:noinline
func (k *keep) spentAt() time.Duration { return time.Duration(k.until) }

// sleep is clock_nanosleep(2).
//
//go:nosplit
//go:norace
//go:nocheckptr
func sleep(clock, flags uintptr, d time.Duration) syscall.Errno {
	ts := unix.Timespec{Sec: int64(d / time.Second), Nsec: int64(d % time.Second)}
	_, _, errno := syscall.RawSyscall6(unix.SYS_CLOCK_NANOSLEEP, clock, flags, uintptr(unsafe.Pointer(&ts)), 0, 0, 0)
	return errno
}
