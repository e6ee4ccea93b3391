//go:build linux && (amd64 || arm64)

package testtask

import (
	"fmt"
	"time"
)

// A Kind says what Start shall make. The zero value is not a kind. Kinds are
// comparable, and reach the stage as JSON.
type Kind struct {
	Name string
	N    int // how many threads, or processes

	// Of hogs, storms and stampers only, which have functions of their own.
	CPU     int           // where
	Threads int           // per process
	Life    time.Duration // how long at most
	Every   time.Duration // between two processes
	File    string        // of shared memory; N is the part that is this one's

	Priority int32 // at SCHED_FIFO; 0: 99
}

// One process each, unless other roles are named.
var (
	Forked       = Kind{Name: "forked"}        // forked, never exec'd, in rt_sigsuspend
	Stopped      = Kind{Name: "stopped"}       // by SIGSTOP
	Sleeping     = Kind{Name: "sleeping"}      // in clock_nanosleep
	PipeRead     = Kind{Name: "pipe-read"}     // reading an empty pipe
	FutexWait    = Kind{Name: "futex-wait"}    // FUTEX_WAIT without a timeout
	DoWait       = Kind{Name: "do-wait"}       // in wait4; role "child" sleeps
	EpollWait    = Kind{Name: "epoll-wait"}    // on one silent pipe
	Poll         = Kind{Name: "poll"}          // on one silent pipe
	Spinning     = Kind{Name: "spinning"}      // in user mode, nice 19
	SpinSyscall  = Kind{Name: "spin-syscall"}  // reads /dev/zero for ever, nice 19
	Zombie       = Kind{Name: "zombie"}        // exited, not reaped
	ZombieLeader = Kind{Name: "zombie-leader"} // leader exited, two threads live
	MidExit      = Kind{Name: "mid-exit"}      // held past exit_signals; role "owner" holds it
	TracedExit   = Kind{Name: "traced-exit"}   // at PTRACE_EVENT_EXIT; role "tracer"
	MutexWait    = Kind{Name: "mutex-wait"}    // roles "first", "second" wait for a mutex of "owner"
	InodeWait    = Kind{Name: "inode-wait"}    // the same with an inode's rwsem, and write(2) to a memfd
	FileLocks    = Kind{Name: "file-locks"}    // roles "flock", "posix", "ofd" wait for three locks of "holder" on a file
	StoppedChild = Kind{Name: "stopped-child"} // in wait4; role "child" is stopped
	VforkParent  = Kind{Name: "vfork-parent"}  // until role "child" execs or exits: never
	InPidNS      = Kind{Name: "in-pid-ns"}     // pid 1 of a new pid namespace
	LongComm     = Kind{Name: "long-comm"}     // name cut at 15 bytes
	NastyComm    = Kind{Name: "nasty-comm"}    // parentheses, newline, escape sequence
	KernelThread = Kind{Name: "kernel-thread"} // nothing is made: kthreadd and role "other" are found
)

// Defaults of the counted kinds.
const (
	DefaultThreads    = 100
	DefaultBystanders = 500
)

// ManyThreads is one process of n threads, by turns in futex and pipe read;
// n of 0 means DefaultThreads.
func ManyThreads(n int) Kind {
	if n == 0 {
		n = DefaultThreads
	}
	return Kind{Name: "many-threads", N: n}
}

// Bystanders is n sleeping processes of one thread; n of 0 means
// DefaultBystanders.
func Bystanders(n int) Kind {
	if n == 0 {
		n = DefaultBystanders
	}
	return Kind{Name: "bystanders", N: n}
}

// Crowd is some n threads that stand still, in every state that lasts: a process of many
// threads, processes of one, and a few of each kind that waits otherwise. State D is
// among them (MutexWait), which a kernel with hung_task_panic panics at.
func Crowd(n int) []Kind {
	single := min(n/4, 500)
	return []Kind{ManyThreads(max(n-single, 2)), Bystanders(max(single, 1)),
		Forked, Stopped, Sleeping, PipeRead, FutexWait, DoWait, EpollWait, Poll, Zombie, ZombieLeader,
		MutexWait, FileLocks, StoppedChild, VforkParent, LongComm, NastyComm}
}

// All is one of every kind, the counted ones with few.
func All() []Kind {
	return []Kind{
		Forked, Stopped, Sleeping, PipeRead, FutexWait, DoWait, EpollWait, Poll,
		Spinning, SpinSyscall, Zombie, ZombieLeader, MidExit, TracedExit,
		MutexWait, InodeWait, FileLocks, StoppedChild, VforkParent, InPidNS, LongComm, NastyComm, KernelThread,
		ManyThreads(20), Bystanders(10),
	}
}

func (k Kind) String() string {
	if k.N == 0 {
		return k.Name
	}
	return fmt.Sprintf("%s(%d)", k.Name, k.N)
}
