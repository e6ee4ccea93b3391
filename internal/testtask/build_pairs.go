//go:build linux && (amd64 || arm64)

package testtask

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// doWait: the child is a true child of the waiting actor, which reaps it and
// then exits.
func (s *stage) doWait(steps ...step) error {
	child := s.program(1, steps...)
	_, err := s.actor(0, 0,
		step{nr: unix.SYS_CLONE, arg: args{unix.CLONE_PARENT_SETTID | uintptr(unix.SIGCHLD), 0, addr(&child.slot.pid)},
			child: child, must: true, save: true},
		step{nr: unix.SYS_WAIT4, must: true, use: true})
	return err
}

// vfork: without CLONE_VM the child has its own memory, and still its parent
// waits. With CLONE_PARENT the test process reaps both.
func (s *stage) vfork() error {
	child := s.program(1, nap())
	const flags = unix.CLONE_VFORK | unix.CLONE_PARENT | unix.CLONE_PARENT_SETTID
	_, err := s.actor(0, 0,
		step{nr: unix.SYS_CLONE, arg: args{flags | uintptr(unix.SIGCHLD), 0, addr(&child.slot.pid)}, child: child, must: true})
	return err
}

// tracedExit: the tracer asks for the stop at exit, then the other exits.
func (s *stage) tracedExit() error {
	pid, err := s.actor(0, 0, s.start())
	if err != nil {
		return err
	}
	_, err = s.actor(1, 0,
		step{nr: unix.SYS_PTRACE, arg: args{unix.PTRACE_SEIZE, uintptr(pid), 0,
			unix.PTRACE_O_TRACEEXIT | unix.PTRACE_O_EXITKILL}, must: true},
		suspended())
	return err
}

// behindMutex makes the last role the owner of a pipe's mutex, for as long as
// it lives: it is in the middle of a write whose source page nobody will
// supply. The others hold the read end alone; in the second phase they run
// then, or else read.
func (s *stage) behindMutex(then ...step) error {
	r, w, err := s.pipe()
	if err != nil {
		return err
	}
	last := len(s.slots) - 1
	if then == nil {
		read, _ := readOf(r)
		then = []step{read}
	}
	for i := range last {
		steps := append([]step{s.start(), closeStep(w)}, then...)
		if _, err := s.actor(i, 0, steps...); err != nil {
			return err
		}
	}
	return s.stuckWriter(last, w, closeStep(r))
}

// behindInode is the same with the lock of a file's inode, which every write takes:
// the owner writes to a memfd, then the others do.
func (s *stage) behindInode() error {
	fd, err := unix.MemfdCreate("testtask-inode", 0)
	if err != nil {
		return fmt.Errorf("memfd_create: %w", err)
	}
	s.fds = append(s.fds, fd)
	// Each has an open file description of its own: 6.12.118 holds the lock of a description's
	// position while it writes to a memfd, so who shares one would wait for that.
	path := append(fmt.Appendf(nil, "/proc/self/fd/%d", fd), 0)
	open := step{nr: unix.SYS_OPENAT, arg: args{^uintptr(0), addr(&path[0]), unix.O_RDWR}, must: true, save: true}
	last := len(s.slots) - 1
	for i := range last {
		write := step{nr: unix.SYS_WRITE, arg: args{0, addr(new([8]byte)), 1}, must: true, use: true}
		if _, err := s.actor(i, 0, s.start(), open, write); err != nil {
			return err
		}
	}
	return s.stuckWriter(last, fd)
}

// fileLocks has the last role hold a lock of each sort on one file, which the others wait
// for. Each has an open file description of its own, for flock and OFD locks are those of
// such a one; the locks of fcntl are of one byte each, since these two sorts exclude each other.
func (s *stage) fileLocks() error {
	fd, err := unix.MemfdCreate("testtask-locks", 0)
	if err != nil {
		return fmt.Errorf("memfd_create: %w", err)
	}
	s.fds = append(s.fds, fd)
	path := append(fmt.Appendf(nil, "/proc/self/fd/%d", fd), 0)
	open := step{nr: unix.SYS_OPENAT, arg: args{^uintptr(0), addr(&path[0]), unix.O_RDWR}, must: true, save: true}
	lock := func(cmd int, start int64) step {
		l := &unix.Flock_t{Type: unix.F_WRLCK, Start: start, Len: 1}
		return step{nr: unix.SYS_FCNTL, arg: args{0, uintptr(cmd), addr(l)}, must: true, use: true}
	}
	locks := []step{{nr: unix.SYS_FLOCK, arg: args{0, unix.LOCK_EX}, must: true, use: true}, lock(unix.F_SETLKW, 0), lock(unix.F_OFD_SETLKW, 1)}
	for i, l := range locks {
		if _, err := s.actor(i, 0, s.start(), open, l); err != nil {
			return err
		}
	}
	_, err = s.actor(len(locks), 0, append(append([]step{open}, locks...), nap())...)
	return err
}

// stuckWriter is for ever in the middle of a write to w: its source page is missing,
// and userfaultfd, which is to supply it, is served by nobody.
func (s *stage) stuckWriter(i, w int, before ...step) error {
	page := unix.Getpagesize()
	mem, err := unix.Mmap(-1, 0, page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return fmt.Errorf("mmap: %w", err)
	}
	at := uintptr(unsafe.Pointer(unsafe.SliceData(mem)))
	api := &[3]uint64{uffdAPIVersion}
	reg := &[4]uint64{uint64(at), uint64(page), registerMissing}
	_, err = s.actor(i, 0, append(before,
		step{nr: unix.SYS_USERFAULTFD, must: true, save: true},
		step{nr: unix.SYS_IOCTL, arg: args{0, uffdioAPI, addr(api)}, must: true, use: true},
		step{nr: unix.SYS_IOCTL, arg: args{0, uffdioRegister, addr(reg)}, must: true, use: true},
		step{nr: unix.SYS_WRITE, arg: args{uintptr(w), at, 1}, must: true})...)
	return err
}

func closeStep(fd int) step { return step{nr: unix.SYS_CLOSE, arg: args{uintptr(fd)}} }
