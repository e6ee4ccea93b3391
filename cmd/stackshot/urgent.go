package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"stackshot/internal/limits"
)

// A machine in trouble has more work than CPUs, and a capture is a second of work: beside 24
// busy threads on two CPUs it would take half a minute. So everything that the file waits for
// runs at SCHED_RR priority 1, in helper processes too, which inherit it. The file does not
// wait for names, which may take long: they are looked up at the ordinary priority.
var (
	ordinary = schedule{unix.SCHED_NORMAL, 0}
	urgent   = schedule{unix.SCHED_RR, 1}
)

// schedule is the policy and the real-time priority of a thread.
type schedule struct{ policy, priority int }

// urgentBudget is the CPU time that all threads together may spend at the urgent
// priority between begin and end. What takes longer goes on as an ordinary program, so
// that it does not starve the machine.
const urgentBudget = 5 * time.Second

// urgency is the priority of this process. Two kinds of threads keep theirs: workers, which
// are at SCHED_FIFO, and all that had another policy than the ordinary when we were started.
type urgency struct {
	budget time.Duration // constant; 0: urgentBudget

	mu    sync.Mutex
	timer *time.Timer   // by mu; nil: the priority is ordinary
	spent time.Duration // by mu; CPU time at the last begin
}

// begin makes every thread of this process urgent, until end is called or the budget is spent.
// After an error nothing has changed.
func (u *urgency) begin() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.timer != nil {
		return nil
	}
	if err := limits.RealTime(); err != nil {
		return err
	}
	u.spent = cpuTime()
	if err := everyThread(ordinary, urgent); err != nil {
		everyThread(urgent, ordinary)
		return err
	}
	u.timer = time.AfterFunc(turn(u.left()), u.check)
	return nil
}

// end makes every thread of this process an ordinary one again, and reports whether they were
// urgent until now.
func (u *urgency) end() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.stop()
}

// stop is end, with mu held.
func (u *urgency) stop() (was bool) {
	if was = u.timer != nil; was {
		u.timer.Stop()
		u.timer = nil
		everyThread(urgent, ordinary)
	}
	return was
}

// check calls stop if the budget is spent; else it looks again when that may be so.
func (u *urgency) check() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.timer == nil {
		return
	}
	if left := u.left(); left > 0 {
		u.timer.Reset(turn(left))
	} else {
		u.stop()
	}
}

// left is what is left of the budget; with mu held.
func (u *urgency) left() time.Duration {
	return cmp.Or(u.budget, urgentBudget) - (cpuTime() - u.spent)
}

// turn is how soon all CPUs together can spend it.
func turn(left time.Duration) time.Duration {
	return max(left/time.Duration(runtime.NumCPU()), 20*time.Millisecond)
}

// limitRealTime sets a limit to how long a thread of this process, or of one that it starts,
// may run at a real-time priority without a pause: twice the budget and the longest stop.
// Beyond it something is wrong, and the kernel kills the process. It does so at the hard
// limit; at the soft one it sends SIGXCPU, which the Go runtime ignores. If we were started at
// a real-time priority, all our work is done at it, so there is no limit.
func limitRealTime(stop time.Duration) {
	now, _ := scheduleOf(0)
	if slices.Contains([]int{unix.SCHED_RR, unix.SCHED_FIFO, unix.SCHED_DEADLINE}, now.policy) {
		return
	}
	most := uint64((2*urgentBudget + stop) / time.Microsecond)
	unix.Setrlimit(unix.RLIMIT_RTTIME, &unix.Rlimit{Cur: most, Max: most}) // if it is refused, the limit is lower already
}

// busy reports whether more threads want to run than there are CPUs.
func busy() bool {
	running, _ := limits.Machine{}.Threads()
	return running > int64(runtime.NumCPU())
}

// isUrgent reports whether this process was started by one that is urgent.
func isUrgent() bool {
	now, err := scheduleOf(0)
	return err == nil && now == urgent
}

// everyThread changes the schedule of all threads of this process that have one schedule to
// another. A thread inherits its schedule from the one that makes it, so once no thread with
// the old one is found, none can come. A thread's nice value stays.
func everyThread(from, to schedule) error {
	const passes = 100
	for range passes {
		list, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return err
		}
		changed := false
		for _, e := range list {
			tid, _ := strconv.Atoi(e.Name())
			if now, err := scheduleOf(tid); err != nil || now != from {
				continue // it has ended, or is none of these
			}
			if err := to.set(tid); err != nil && !errors.Is(err, unix.ESRCH) {
				return err
			}
			changed = true
		}
		if !changed {
			return nil
		}
	}
	return fmt.Errorf("threads of this process come faster than their priority is set")
}

// scheduleOf is that of a thread of this process; tid 0: of the calling one.
func scheduleOf(tid int) (schedule, error) {
	a, err := unix.SchedGetAttr(tid, 0)
	if err != nil {
		return schedule{}, err
	}
	return schedule{int(a.Policy), int(a.Priority)}, nil
}

// set is sched_setscheduler(2), which leaves the nice value.
func (s schedule) set(tid int) error {
	param := int32(s.priority)
	if _, _, errno := unix.Syscall(unix.SYS_SCHED_SETSCHEDULER, uintptr(tid), uintptr(s.policy), uintptr(unsafe.Pointer(&param))); errno != 0 {
		return errno
	}
	return nil
}

// cpuTime is the CPU time of this process, all threads together.
func cpuTime() time.Duration {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &ts) != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}
