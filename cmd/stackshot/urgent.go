package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"stackshot/internal/limits"
)

// A machine in trouble has more work than CPUs, and a capture is a second of work:
// beside 24 busy threads on two CPUs it would take half a minute. So what leads to
// the file runs at SCHED_RR priority 1, helper processes included, since they
// inherit it. What may take long and is not on that way, looking up names, does not.
const (
	urgentPolicy   = unix.SCHED_RR
	urgentPriority = 1

	// urgentBudget is the CPU time that all threads together may spend at that
	// priority between begin and end. What takes longer goes on as an ordinary
	// program: it is not to starve the machine.
	urgentBudget = 5 * time.Second
)

// urgency is the priority of this process. Workers, at SCHED_FIFO, are left alone,
// as are threads that whoever started us gave another policy than the ordinary.
type urgency struct {
	budget time.Duration // constant; 0: urgentBudget

	mu    sync.Mutex
	timer *time.Timer   // by mu; nil: the priority is ordinary
	spent time.Duration // by mu; CPU time at the last begin
}

// begin has every thread of this process run at the urgent priority, until end or
// until the budget is spent. An error says that nothing has changed.
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
	if err := everyThread(unix.SCHED_NORMAL, 0, urgentPolicy, urgentPriority); err != nil {
		u.calm()
		return err
	}
	u.timer = time.AfterFunc(turn(u.left()), u.check)
	return nil
}

// end makes every thread of this process an ordinary one, and reports whether they
// were urgent until now.
func (u *urgency) end() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.timer == nil {
		return false
	}
	u.timer.Stop()
	u.timer = nil
	u.calm()
	return true
}

// check ends what has spent its budget, or looks again when it may have.
func (u *urgency) check() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.timer == nil {
		return
	}
	if left := u.left(); left > 0 {
		u.timer.Reset(turn(left))
		return
	}
	u.timer = nil
	u.calm()
}

// left is of the budget; with mu held.
func (u *urgency) left() time.Duration {
	return cmp.Or(u.budget, urgentBudget) - (cpuTime() - u.spent)
}

// turn is how soon it can be spent, by all CPUs together.
func turn(left time.Duration) time.Duration {
	return max(left/time.Duration(runtime.NumCPU()), 20*time.Millisecond)
}

func (u *urgency) calm() { everyThread(urgentPolicy, urgentPriority, unix.SCHED_NORMAL, 0) }

// limitRealTime has the kernel kill this process, and each that it starts, when one of
// its threads runs at a real-time priority without a pause for longer than anything
// of ours may: the budget of what is urgent, and the longest stop. It is the hard limit
// that kills; the Go runtime does not hear SIGXCPU, which the other one sends. Whoever
// starts us at a real-time priority has all our work done at it: that is no fault.
func limitRealTime(stop time.Duration) {
	if policy, _, _ := policyOf(0); policy == unix.SCHED_RR || policy == unix.SCHED_FIFO || policy == unix.SCHED_DEADLINE {
		return
	}
	most := uint64((2*urgentBudget + stop) / time.Microsecond)
	unix.Setrlimit(unix.RLIMIT_RTTIME, &unix.Rlimit{Cur: most, Max: most}) // refused: it is less already
}

// busy reports whether more threads want to run than there are CPUs.
func busy() bool {
	running, _ := limits.Machine{}.Threads()
	return running > int64(runtime.NumCPU())
}

// isUrgent reports whether this process was started by one that is urgent.
func isUrgent() bool {
	policy, priority, err := policyOf(0)
	return err == nil && policy == urgentPolicy && priority == urgentPriority
}

// everyThread changes all threads of this process that have one policy to another.
// A thread inherits its policy from the one that makes it: when none is found, none
// can come. A thread's nice value stays.
func everyThread(policy, priority, toPolicy, toPriority int) error {
	const passes = 100
	for range passes {
		list, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return err
		}
		changed := false
		for _, e := range list {
			tid, _ := strconv.Atoi(e.Name())
			if p, prio, err := policyOf(tid); err != nil || p != policy || prio != priority {
				continue // it has ended, or is none of these
			}
			if err := setPolicy(tid, toPolicy, toPriority); err != nil && !errors.Is(err, unix.ESRCH) {
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

func policyOf(tid int) (policy, priority int, err error) {
	a, err := unix.SchedGetAttr(tid, 0)
	if err != nil {
		return 0, 0, err
	}
	return int(a.Policy), int(a.Priority), nil
}

// setPolicy is sched_setscheduler(2), which leaves the nice value.
func setPolicy(tid, policy, priority int) error {
	param := int32(priority)
	if _, _, errno := unix.Syscall(unix.SYS_SCHED_SETSCHEDULER, uintptr(tid), uintptr(policy), uintptr(unsafe.Pointer(&param))); errno != 0 {
		return errno
	}
	return nil
}

// cpuTime is what this process has had of the CPUs.
func cpuTime() time.Duration {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &ts) != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}
