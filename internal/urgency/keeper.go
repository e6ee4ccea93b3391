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

// above is the keeper's schedule: above all but FIFO 99 if it may be, or else just above what it lowers.
var above = [...]schedule{{unix.SCHED_RR, Raised + 1}, {unix.SCHED_RR, Priority + 1}}

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

	beats  int32         // by beat
	done   int32         // by Begin: 1 when it is done
	step   int32         // by Begin: atStart; by the keeper: what it did to a process that does not run
	heard  int32         // the keeper's: beats that it knows
	silent time.Duration // the keeper's: for how long it slept since
	rank   int32         // the keeper's: its priority
}

const keeping = 1

// Steps of one urgency.
const (
	atStart int32 = iota
	atRaised
	atOrdinary
)

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
			return fmt.Errorf("the thread that would end it, at SCHED_RR %d: %w", Priority+1, syscall.Errno(-state))
		case time.Now().After(last):
			return fmt.Errorf("the thread that would end it, at SCHED_RR %d, did not begin within %v", Priority+1, startTime)
		}
	}
}

// set gives the keeper a new time. process is locked.
func (k *keep) set(until time.Duration) {
	atomic.StoreInt32(&k.step, atStart)
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
	errno := syscall.Errno(unix.EPERM)
	for i := 0; i < len(above) && errno == unix.EPERM; i++ {
		errno, k.rank = above[i].set(0), above[i].priority
	}
	if errno == 0 {
		k.state = keeping
		errno = k.watch()
	}
	k.pass.changeAll(ordinary)
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
		case cpuTime() < until && load(&k.step) != atOrdinary:
			// All CPUs together cannot spend it before.
			d := min(max((until-cpuTime())/time.Duration(k.cpus), soon), later)
			errno = sleep(d)
			k.listen(d)
		default:
			k.pass.change(ordinary)
			errno = sleep(again) // a thread may just be made, or End may have failed
		}
		if errno != 0 && errno != unix.EINTR {
			return errno
		}
	}
}

// listen notes that the keeper slept, and whether goroutines ran meanwhile, and Begin is done. If not for
// long, somebody's real-time tasks have all CPUs, or one has that of a thread for which the
// runtime waits. Then our threads are raised, and made ordinary if that does not help either. Threads of another
// schedule stay as they are, and nothing is said.
//
//go:nosplit
//go:norace
func (k *keep) listen(slept time.Duration) {
	if now := load(&k.beats); now != k.heard && load(&k.done) != 0 {
		k.heard, k.silent = now, 0
		return
	}
	if k.silent += slept; k.silent < starveTime {
		return
	}
	k.silent = 0
	until, isDone := k.spentAt(), load(&k.done) != 0
	switch {
	case until <= 1: // End is under way
	case load(&k.step) == atStart && k.rank > Raised:
		changed, _ := k.pass.change(raised)
		switch {
		case changed:
			k.step = atRaised
		case !isDone: // Begin's own thread is raised, and waits all the same
			k.step = atOrdinary
		}
		if k.spentAt() == until {
			return
		}
		// End came meanwhile, and may have missed a thread, or one that a raised thread was making.
		k.step = atStart
		for range 5 {
			k.pass.changeAll(ordinary)
			sleep(again)
		}
	case load(&k.step) != atOrdinary:
		k.step = atOrdinary
	}
}

// How often goroutines show that they run, and how long the keeper sleeps without a sign of it until they are
// helped. It counts its own sleeps: a machine, or a process, that was stopped meanwhile is no sign.
const beatTime = 50 * time.Millisecond

var starveTime = time.Second // tests set others

// load loads each time that it is called.
//
//go:nosplit
//go:norace
//go:noinline
func load(p *int32) int32 { return *p }

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
