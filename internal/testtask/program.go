//go:build linux && (amd64 || arm64)

package testtask

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Steps that are not system calls.
const (
	opSpin    = ^uintptr(0) - iota // loop in user mode for ever
	opSpinFor                      // loop in user mode until arg[0] ns have passed
	opThreads                      // make arg[0] threads that run step.thread
	opStorm                        // run step.storm
	opStamp                        // stamp step.ring until arg[0] ns have passed
)

// A step is one raw system call of an actor. Everything a step points at is
// made before the fork and kept reachable by the stage.
type step struct {
	nr      uintptr
	arg     [6]uintptr
	once    uintptr    // in a thread: exit after the call; else repeat it for ever
	must    bool       // a failure ends the actor and goes onto the board
	forever bool       // repeat
	save    bool       // keep the result for later steps
	use     bool       // arg[0] is the kept result
	child   *program   // after clone without CLONE_VM: what the child runs
	thread  *step      // of opThreads
	storm   *storm     // of opStorm
	ring    *stampRing // of opStamp
}

// A program is what an actor runs from its first instruction to its end; when
// the steps are through it exits with status 0.
type program struct {
	steps []step
	slot  *slot
	kept  uintptr // written by the actor
}

// forkActor makes an actor; in the actor it does not return.
//
//go:nosplit
//go:norace
//go:noinline
func forkActor(flags uintptr, p *program) (pid uintptr, errno syscall.Errno) {
	pid, _, errno = syscall.RawSyscall6(unix.SYS_CLONE, flags|unix.CLONE_PARENT_SETTID, 0,
		uintptr(unsafe.Pointer(&p.slot.pid)), 0, 0, 0)
	if errno == 0 && pid == 0 {
		run(p)
	}
	return pid, errno
}

// run interprets a program and never returns. Like all code that runs in an
// actor it is nosplit and norace: growing the stack, yielding to the scheduler
// and calling into the race detector need the runtime, whose other threads did
// not survive the fork.
//
//go:nosplit
//go:norace
func run(p *program) {
	for i := 0; i < len(p.steps); i++ {
		s := &p.steps[i]
		p.slot.step = int32(i + 1)
		if s.use {
			s.arg[0] = p.kept
		}
		r, errno := s.do()
		if errno == 0 && r == 0 && s.child != nil {
			p, i = s.child, -1
			continue
		}
		if errno != 0 && s.must {
			p.slot.errno = int32(errno)
			exitGroup(1)
		}
		if s.save {
			p.kept = r
		}
		if s.forever {
			i--
		}
	}
	exitGroup(0)
}

//go:nosplit
//go:norace
func (s *step) do() (r uintptr, errno syscall.Errno) {
	switch s.nr {
	case opSpin:
		//lint:ignore SA5002 spinning is what this actor is for
		for {
		}
	case opSpinFor:
		spinFor(int64(s.arg[0]))
		return 0, 0
	case opThreads:
		return startThreads(s.thread, s.arg[0])
	case opStorm:
		return 0, s.storm.run()
	case opStamp:
		s.ring.run(int64(s.arg[0]))
		return 0, 0
	}
	r, _, errno = syscall.RawSyscall6(s.nr, s.arg[0], s.arg[1], s.arg[2], s.arg[3], s.arg[4], s.arg[5])
	return r, errno
}

//go:nosplit
//go:norace
func startThreads(s *step, n uintptr) (uintptr, syscall.Errno) {
	const flags = unix.CLONE_VM | unix.CLONE_FS | unix.CLONE_FILES |
		unix.CLONE_SIGHAND | unix.CLONE_THREAD | unix.CLONE_SYSVSEM
	for range n {
		if r := startThread(flags, s); int(r) < 0 {
			return 0, syscall.Errno(-r)
		}
	}
	return n, 0
}

// startThread makes a thread that runs s, with nothing but registers. It
// returns the tid, or the negative errno.
//
//go:noescape
func startThread(flags uintptr, s *step) uintptr

// spinFor asks the clock once in a while only, so that it is user mode where
// this actor is found.
//
//go:nosplit
//go:norace
func spinFor(ns int64) {
	end := monotonic() + ns
	for monotonic() < end {
		for range 1 << 18 {
		}
	}
}

//go:nosplit
//go:norace
func monotonic() int64 {
	var ts unix.Timespec
	syscall.RawSyscall(unix.SYS_CLOCK_GETTIME, unix.CLOCK_MONOTONIC, uintptr(unsafe.Pointer(&ts)), 0)
	return ts.Sec*1e9 + ts.Nsec
}

//go:nosplit
//go:norace
func exitGroup(code uintptr) {
	for {
		syscall.RawSyscall(unix.SYS_EXIT_GROUP, code, 0, 0)
	}
}
