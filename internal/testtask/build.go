//go:build linux && (amd64 || arm64)

package testtask

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Numbers that golang.org/x/sys/unix does not have.
const (
	futexWait        = 0
	futexWake        = 1
	futexPrivate     = 128
	uffdioAPI        = 0xc018aa3f // struct uffdio_api
	uffdioRegister   = 0xc020aa00 // struct uffdio_register
	uffdAPIVersion   = 0xaa
	registerMissing  = 1
	sigsetSize       = 8
	hogRTTimeSlackUs = 1e6
)

type args = [6]uintptr

// build makes the actors of s.kind, one per role and in that order.
func (s *stage) build() error {
	switch s.kind.Name {
	case DoWait.Name:
		return s.doWait(nap())
	case StoppedChild.Name:
		return s.doWait(stopSteps()...)
	case VforkParent.Name:
		return s.vfork()
	case MidExit.Name:
		return s.behindMutex(step{nr: unix.SYS_EXIT_GROUP})
	case MutexWait.Name:
		return s.behindMutex()
	case InodeWait.Name:
		return s.behindInode()
	case FileLocks.Name:
		return s.fileLocks()
	case TracedExit.Name:
		return s.tracedExit()
	case InPidNS.Name:
		// The life pipe, because signals of the kernel do not end an init.
		_, err := s.actor(0, unix.CLONE_NEWPID, step{nr: unix.SYS_READ, arg: args{lifeFD, addr(new([8]byte)), 1}})
		return err
	}
	for i := range s.slots {
		steps, err := s.simple()
		if err != nil {
			return err
		}
		if _, err := s.actor(i, 0, steps...); err != nil {
			return err
		}
	}
	return nil
}

// simple is what actors run that need no other.
func (s *stage) simple() ([]step, error) {
	switch s.kind.Name {
	case Forked.Name:
		return []step{suspended()}, nil
	case Stopped.Name:
		return stopSteps(), nil
	case Sleeping.Name, LongComm.Name, NastyComm.Name, bystanders.Name:
		return []step{nap()}, nil
	case PipeRead.Name:
		return s.silentPipe(readOf)
	case EpollWait.Name:
		return s.silentPipe(epollOf)
	case Poll.Name:
		return s.silentPipe(pollOf)
	case FutexWait.Name:
		return []step{futexStep()}, nil
	case Spinning.Name:
		return []step{nice19(), {nr: opSpin}}, nil
	case SpinSyscall.Name:
		read, err := s.readZeros()
		return []step{nice19(), read}, err
	case Zombie.Name:
		return []step{{nr: unix.SYS_EXIT_GROUP}}, nil
	case ZombieLeader.Name:
		w := futexStep()
		return []step{{nr: opThreads, arg: args{2}, thread: &w, must: true}, {nr: unix.SYS_EXIT}}, nil
	case manyThreads.Name:
		return s.manyThreads()
	case stamper.Name:
		return s.stampSteps()
	}
	return s.hostile()
}

// readZeros is in a system call nearly all the time, and never sleeps.
func (s *stage) readZeros() (step, error) {
	fd, err := unix.Open("/dev/zero", unix.O_RDONLY, 0)
	s.fds = append(s.fds, fd)
	return step{nr: unix.SYS_READ, arg: args{uintptr(fd), addr(new([4096]byte)), 4096}, must: true, forever: true},
		os.NewSyscallError("open /dev/zero", err)
}

func nap() step {
	ts := &unix.Timespec{Sec: 1 << 30}
	return step{nr: unix.SYS_CLOCK_NANOSLEEP, arg: args{unix.CLOCK_MONOTONIC, 0, addr(ts)}, must: true, forever: true}
}

// stopSteps stop the actor, and again whenever it is continued.
func stopSteps() []step {
	return []step{{nr: unix.SYS_GETPID, save: true},
		{nr: unix.SYS_KILL, arg: args{0, uintptr(unix.SIGSTOP)}, use: true, forever: true}}
}

func suspended() step {
	all := ^uint64(0)
	return step{nr: unix.SYS_RT_SIGSUSPEND, arg: args{addr(&all), sigsetSize}, forever: true}
}

func nice19() step {
	return step{nr: unix.SYS_SETPRIORITY, arg: args{unix.PRIO_PROCESS, 0, 19}, must: true}
}

func futexStep() step {
	return step{nr: unix.SYS_FUTEX, arg: args{addr(new(uint32)), futexWait | futexPrivate}, must: true, forever: true}
}

// start waits for the second phase.
func (s *stage) start() step {
	return step{nr: unix.SYS_FUTEX, arg: args{addr(&s.board.head.start), futexWait}}
}

// silentPipe has both ends of a pipe in the actor, so it never ends and never
// has anything to read.
func (s *stage) silentPipe(wait func(r int) (step, error)) ([]step, error) {
	r, _, err := s.pipe()
	if err != nil {
		return nil, err
	}
	st, err := wait(r)
	return []step{st}, err
}

func (s *stage) pipe() (r, w int, err error) {
	var p [2]int
	if err := unix.Pipe2(p[:], 0); err != nil {
		return 0, 0, fmt.Errorf("pipe2: %w", err)
	}
	s.fds = append(s.fds, p[0], p[1])
	return p[0], p[1], nil
}

func readOf(r int) (step, error) {
	return step{nr: unix.SYS_READ, arg: args{uintptr(r), addr(new([8]byte)), 1}, must: true, forever: true}, nil
}

func pollOf(r int) (step, error) {
	p := &unix.PollFd{Fd: int32(r), Events: unix.POLLIN}
	return step{nr: unix.SYS_PPOLL, arg: args{addr(p), 1}, must: true, forever: true}, nil
}

func epollOf(r int) (step, error) {
	ep, err := unix.EpollCreate1(0) // stays open in the stage: it soon exits
	if err != nil {
		return step{}, fmt.Errorf("epoll_create1: %w", err)
	}
	if err := unix.EpollCtl(ep, unix.EPOLL_CTL_ADD, r, &unix.EpollEvent{Events: unix.EPOLLIN}); err != nil {
		return step{}, fmt.Errorf("epoll_ctl: %w", err)
	}
	return step{nr: unix.SYS_EPOLL_PWAIT, arg: args{uintptr(ep), addr(new(unix.EpollEvent)), 1, ^uintptr(0)}, must: true, forever: true}, nil
}

func (s *stage) manyThreads() ([]step, error) {
	r, _, err := s.pipe()
	if err != nil {
		return nil, err
	}
	read, _ := readOf(r)
	futex := futexStep()
	n := uintptr(s.kind.N - 1)
	return []step{
		{nr: opThreads, arg: args{n / 2}, thread: &read, must: true},
		{nr: opThreads, arg: args{n - n/2}, thread: &futex, must: true},
		futex,
	}, nil
}
