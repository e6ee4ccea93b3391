//go:build linux && (amd64 || arm64)

package testtask

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The stage's way in: the environment says what to make, these descriptors are
// open.
const (
	stageEnv = "STACKSHOT_TESTTASK_STAGE"
	lifeFD   = 3 // read end of the life pipe
	boardFD  = 4
)

// armed says that this process calls MaybeRun, so running its binary once more
// gives a stage and not a second run of its tests. Written by MaybeRun only.
var armed bool

// MaybeRun makes this process the stage if Start started it as one, or the guard
// of NewGuard, and then does not return. Call it first thing in TestMain.
func MaybeRun() {
	if guarded := os.Getenv(guardEnv); guarded != "" {
		if err := runGuard(guarded); err != nil {
			fmt.Fprintln(os.Stderr, err)
			unix.Exit(1)
		}
		unix.Exit(0)
	}
	req := os.Getenv(stageEnv)
	if req == "" {
		armed = true
		return
	}
	// khugepaged makes a stopped actor larger, by pages that it never touched.
	// Its children inherit this.
	if err := unix.Prctl(unix.PR_SET_THP_DISABLE, 1, 0, 0, 0); err != nil {
		fmt.Fprintln(os.Stderr, "PR_SET_THP_DISABLE:", err)
		unix.Exit(1)
	}
	if err := runStage(req); err != nil {
		fmt.Fprintln(os.Stderr, err)
		unix.Exit(1)
	}
	unix.Exit(0)
}

// A stage makes the actors of one Start.
type stage struct {
	kind    Kind   // the kind at work
	slots   []slot // of that kind's roles
	board   *board
	made    []*program // keeps what the actors point at
	fds     []int      // of that kind, closed when its actors are made
	stormed int        // storm workers made
}

func runStage(req string) error {
	debug.SetGCPercent(-1)
	runtime.LockOSThread()
	if err := blockSignals(); err != nil {
		return err
	}
	var kinds []Kind
	if err := json.Unmarshal([]byte(req), &kinds); err != nil {
		return fmt.Errorf("testtask: stage: %s: %w", stageEnv, err)
	}
	if err := tieToLife(); err != nil {
		return err
	}
	n, err := countRoles(kinds)
	if err != nil {
		return err
	}
	b, err := openBoard(os.NewFile(boardFD, "board"), n)
	if err != nil {
		return err
	}
	return makeAll(b, kinds)
}

func makeAll(b *board, kinds []Kind) error {
	next := 0
	for _, k := range kinds {
		if k == KernelThread {
			continue
		}
		rs, err := k.roles()
		if err != nil {
			return err
		}
		s := &stage{kind: k, board: b, slots: b.slots[next : next+len(rs)]}
		next += len(rs)
		if err := s.build(); err != nil {
			return fmt.Errorf("testtask: stage: %v: %w", k, err)
		}
		for _, fd := range s.fds {
			unix.Close(fd)
		}
	}
	return nil
}

// blockSignals blocks all signals of this thread, and so of every actor: no Go
// signal handler may run in one.
func blockSignals() error {
	all := ^uint64(0)
	_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK,
		uintptr(unsafe.Pointer(&all)), 0, 8, 0, 0)
	if errno != 0 {
		return fmt.Errorf("testtask: stage: rt_sigprocmask: %w", errno)
	}
	return nil
}

// tieToLife has the kernel kill this process group when the write end of the
// life pipe closes (invariant I3).
func tieToLife() error {
	for _, c := range []struct{ cmd, arg int }{
		{unix.F_SETOWN, -unix.Getpgrp()},
		{unix.F_SETSIG, int(unix.SIGKILL)},
		{unix.F_SETFL, unix.O_ASYNC},
	} {
		if _, err := unix.FcntlInt(lifeFD, c.cmd, c.arg); err != nil {
			return fmt.Errorf("testtask: stage: fcntl(%d, %d) of the life pipe: %w", c.cmd, c.arg, err)
		}
	}
	// The write end may have closed before the signal was armed.
	p := []unix.PollFd{{Fd: lifeFD, Events: unix.POLLIN}}
	if n, err := unix.Poll(p, 0); err != nil || n != 0 {
		return fmt.Errorf("testtask: stage: the test process is gone (poll: %d, %v)", n, err)
	}
	return nil
}

// actor forks role i of the kind with the given steps, after a first one that
// sets its name.
func (s *stage) actor(i int, flags uintptr, steps ...step) (int, error) {
	p := s.program(i, steps...)
	pid, errno := forkActor(flags|unix.CLONE_PARENT|uintptr(unix.SIGCHLD), p)
	if errno != 0 {
		return 0, fmt.Errorf("role %d: clone(%#x): %w", i, flags, errno)
	}
	return int(pid), nil
}

func (s *stage) program(i int, steps ...step) *program {
	comm := s.kind.comm()
	if s.kind == LongComm {
		comm = longComm
	}
	name := append([]byte(comm), 0)
	p := &program{slot: &s.slots[i]}
	p.steps = append(p.steps, step{nr: unix.SYS_PRCTL, arg: [6]uintptr{unix.PR_SET_NAME, addr(&name[0])}, must: true})
	p.steps = append(p.steps, steps...)
	p.slot.last = int32(len(p.steps))
	s.made = append(s.made, p)
	return p
}

// addr is for memory that lives as long as the stage: there is no collector
// and nothing on the heap moves.
func addr[T any](p *T) uintptr {
	pinned = append(pinned, p)
	return uintptr(unsafe.Pointer(p))
}

// pinned keeps what only system call arguments point at. Written by the
// stage's one goroutine.
var pinned []any
