//go:build linux && (amd64 || arm64)

package testtask

import (
	"fmt"
	"runtime"
	"slices"

	"golang.org/x/sys/unix"
)

// A role is one actor of a kind, in the order in which the stage makes them.
type role struct {
	name   string // empty for the one the kind is about
	second bool   // reaches its state only after board.begin
	within bool   // made, and reaped, by the role before it
	want   Want
}

// Functions that went by several names, 6.1 to 7.x. Scheduling functions
// (schedule, do_nanosleep, __mutex_lock) are not asked for: /proc/PID/stack
// leaves them out, though a snapshot has them.
var (
	inPipeRead = []string{"anon_pipe_read", "pipe_read", "fifo_pipe_read"}
	inFutex    = []string{"futex_do_wait", "futex_wait_queue", "futex_wait_queue_me"}
	inDoWait   = []string{"do_wait", "__do_wait"}
	inWrite    = []string{"generic_perform_write"} // of a memfd
	inodeLock  = []string{"shmem_file_write_iter", "generic_file_write_iter"}
	kthreadEnd = []string{"ret_from_fork_asm", "ret_from_fork"}
)

const (
	longComm  = "a-name-of-more-than-15-bytes"
	nastyComm = "a) R (b\n\x1b[31m\x01"
)

// roles is what a kind consists of. The test process and the stage both ask
// it, so that slots mean the same to both.
func (k Kind) roles() ([]role, error) {
	rs := k.cast()
	if len(rs) == 0 {
		return nil, fmt.Errorf("testtask: no such kind: %q", k.Name)
	}
	for i := range rs {
		w := &rs[i].want
		if w.Comm == "" {
			w.Comm = k.comm()
		}
		if w.Threads == 0 {
			w.Threads = 1
		}
	}
	return rs, nil
}

// countRoles is how many actors the stage makes for kinds.
func countRoles(kinds []Kind) (int, error) {
	n := 0
	for _, k := range kinds {
		if k == KernelThread {
			continue
		}
		rs, err := k.roles()
		if err != nil {
			return 0, err
		}
		n += len(rs)
	}
	return n, nil
}

func (k Kind) comm() string {
	switch k {
	case LongComm:
		return longComm[:15]
	case NastyComm:
		return nastyComm
	}
	return ("tt-" + k.Name + "               ")[:min(15, len(k.Name)+3)]
}

func stopped() ThreadWant {
	return ThreadWant{States: "T", Syscall: stoppedIn(), Stack: [][]string{{"do_signal_stop"}}}
}

// stoppedIn is the call that a thread stopped by its own kill still shows: arm64
// forgets it before it looks at the signal (do_signal, arch/arm64/kernel/signal.c).
func stoppedIn() int {
	if runtime.GOARCH == "arm64" {
		return NoSyscall
	}
	return unix.SYS_KILL
}

func (k Kind) cast() []role {
	switch k.Name {
	case Forked.Name:
		return one(asleep(unix.SYS_RT_SIGSUSPEND, "sigsuspend"))
	case Stopped.Name:
		return one(stopped())
	case Sleeping.Name, LongComm.Name, NastyComm.Name:
		return one(napping())
	case PipeRead.Name, InPidNS.Name:
		rs := one(asleep(unix.SYS_READ, inPipeRead...))
		if k == InPidNS {
			rs[0].want.InnerPid = 1
		}
		return rs
	case FutexWait.Name:
		return one(asleep(unix.SYS_FUTEX, inFutex...))
	case DoWait.Name:
		return []role{
			{want: Want{Leader: asleep(unix.SYS_WAIT4, inDoWait...)}},
			{name: "child", within: true, want: Want{Leader: napping()}},
		}
	case StoppedChild.Name:
		return []role{
			{want: Want{Leader: asleep(unix.SYS_WAIT4, inDoWait...)}},
			{name: "child", within: true, want: Want{Leader: stopped()}},
		}
	case EpollWait.Name:
		return one(asleep(unix.SYS_EPOLL_PWAIT, "ep_poll", "do_epoll_wait"))
	case Poll.Name:
		return one(asleep(unix.SYS_PPOLL, "do_sys_poll", "do_poll"))
	case Spinning.Name, SpinSyscall.Name:
		rs := one(ThreadWant{States: "R", Syscall: NoSyscall})
		rs[0].want.Nice = 19
		return rs
	case bystanders.Name:
		return many(k.N, napping())
	}
	return k.castMore()
}

// castMore has the kinds of more than one thread or with something in exit.
func (k Kind) castMore() []role {
	gone := ThreadWant{States: "Z", NoStack: true, Exiting: true, Syscall: NoSyscall}
	owner := Want{Leader: ThreadWant{States: "SD", Syscall: unix.SYS_WRITE, Stack: [][]string{{"handle_userfault"}, {"anon_pipe_write", "pipe_write"}}}}
	waiter := Want{Leader: ThreadWant{States: "D", Syscall: unix.SYS_READ, Stack: [][]string{inPipeRead}}}
	switch k.Name {
	case Zombie.Name:
		return one(gone)
	case ZombieLeader.Name:
		return []role{{want: Want{Threads: 3, Leader: gone, Others: asleep(unix.SYS_FUTEX, inFutex...)}}}
	case manyThreads.Name:
		w := ThreadWant{States: "S", Syscall: NoSyscall, Stack: [][]string{slices.Concat(inFutex, inPipeRead)}}
		return []role{{want: Want{Threads: k.N, Leader: w, Others: w}}}
	case MidExit.Name:
		exiter := ThreadWant{States: "D", Exiting: true, Syscall: NoSyscall, Stack: [][]string{{"pipe_release"}, {"do_exit"}}}
		return []role{{second: true, want: Want{Leader: exiter}}, {name: "owner", want: owner}}
	case MutexWait.Name:
		return []role{{name: "first", second: true, want: waiter},
			{name: "second", second: true, want: waiter}, {name: "owner", want: owner}}
	case InodeWait.Name:
		waiter.Leader.Syscall, waiter.Leader.Stack = unix.SYS_WRITE, [][]string{inodeLock}
		owner.Leader.Stack = [][]string{{"handle_userfault"}, inWrite}
		return []role{{name: "first", second: true, want: waiter},
			{name: "second", second: true, want: waiter}, {name: "owner", want: owner}}
	case FileLocks.Name:
		fcntl := Want{Leader: asleep(unix.SYS_FCNTL, "fcntl_setlk")}
		return []role{{name: "flock", second: true, want: Want{Leader: asleep(unix.SYS_FLOCK, "locks_lock_inode_wait", "flock_lock_inode_wait")}},
			{name: "posix", second: true, want: fcntl}, {name: "ofd", second: true, want: fcntl},
			{name: "holder", want: Want{Leader: napping()}}}
	case TracedExit.Name:
		traced := ThreadWant{States: "t", Syscall: NoSyscall, Stack: [][]string{{"ptrace_stop"}, {"do_exit"}}}
		return []role{{second: true, want: Want{Leader: traced}},
			{name: "tracer", want: Want{Leader: asleep(unix.SYS_RT_SIGSUSPEND, "sigsuspend")}}}
	case VforkParent.Name:
		parent := ThreadWant{States: "D", Syscall: unix.SYS_CLONE, Stack: [][]string{{"kernel_clone"}}}
		return []role{{want: Want{Leader: parent}}, {name: "child", want: Want{Leader: napping()}}}
	case fifoHog.Name, fifoCallHog.Name:
		return []role{{second: true, want: Want{Leader: ThreadWant{States: "RZ", Syscall: NoSyscall}}}}
	case cpuHogs.Name:
		return many(k.N, ThreadWant{States: "RZ", Syscall: NoSyscall})
	case stamper.Name:
		return []role{{want: Want{Nice: -20, Leader: ThreadWant{States: "RS", Syscall: NoSyscall}}}}
	case exitStorm.Name:
		return many(k.N, ThreadWant{States: "RSD", Syscall: NoSyscall})
	}
	return nil
}

// Kinds that have functions of their own; here for their names.
var (
	manyThreads = Kind{Name: "many-threads"}
	bystanders  = Kind{Name: "bystanders"}
	fifoHog     = Kind{Name: "fifo-hog"}
	fifoCallHog = Kind{Name: "fifo-call-hog"}
	cpuHogs     = Kind{Name: "cpu-hogs"}
	exitStorm   = Kind{Name: "exit-storm"}
	stamper     = Kind{Name: "stamper"}
)

func one(w ThreadWant) []role { return []role{{want: Want{Leader: w}}} }

func many(n int, w ThreadWant) []role {
	var rs []role
	for range n {
		rs = append(rs, one(w)...)
	}
	return rs
}

func asleep(syscall int, in ...string) ThreadWant {
	return ThreadWant{States: "S", Syscall: syscall, Stack: [][]string{in}}
}

func napping() ThreadWant { return asleep(unix.SYS_CLOCK_NANOSLEEP, "hrtimer_nanosleep") }
