package proc

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/capture"
	"stackshot/internal/procfs"
	"stackshot/kcdata"
)

// UserBudget bounds the time in which one capture reads stacks of processes that it does
// not stop, summed over its readers. A single read is bounded by the limit of the Readers:
// the kernel takes locks of the process for it, and these may be held for long.
const UserBudget = 2 * time.Second

// userSide reads the stacks of blocked threads, without stopping them, for one capture. From
// /proc/PID/task/TID/syscall come stack pointer and program counter, and from no other
// file any register. The thread may run on meanwhile; then what was read is dropped.
//
// A read faults pages in, as the process itself would: what was swapped out comes back.
type userSide struct {
	bytes   int // of a stack, at most
	left    atomic.Int64
	refused atomic.Int64 // threads that may not be traced
	late    atomic.Int64 // threads for which no time was left, or whose read hung
}

// pageSize is the smallest of any machine: the kernel reads a piece wholly or not at all.
const pageSize = 4096

// again are the files that say whether a thread has run: the count of its turns on a CPU
// first, then where it is. If the count is the first one, it has not run until then; and a
// thread that had been on its way to sleep has another place in its system call.
const again = procfs.ReadSchedstat | procfs.ReadSyscall

// TakeUser has the engine take the stacks of processes that it may trace, so many bytes of
// each. Before the first Capture.
func (e *Engine) TakeUser(bytes int) { e.userBytes = bytes }

func (e *Engine) newUserSide() *userSide {
	if e.userBytes == 0 || e.redact {
		return nil
	}
	u := &userSide{bytes: e.userBytes}
	u.left.Store(int64(UserBudget))
	return u
}

// userItems writes what can be had of a thread's user side. err says how its files were read.
func (r *reader) userItems(w *kcdata.StickyWriter, lx *kcdata.LinuxThread, t *procfs.Thread, err error) {
	u := r.user
	if u == nil || lx.Flags&kcdata.PFKthread != 0 || lx.ExitState != 0 {
		return
	}
	if t.Have&procfs.ReadSyscall == 0 {
		if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
			u.refused.Add(1)
		}
		return
	}
	if !t.Syscall.InUserSpace() || t.Have&procfs.ReadSchedstat == 0 {
		return // it runs, or nothing would say whether it does
	}
	walk := kcdata.LinuxUserWalk{Flags: kcdata.UserFewRegisters}
	if t.Syscall.Nr == -1 {
		walk.Flags |= kcdata.UserExact
	}
	if t.Syscall.PC>>32 == 0 && t.Syscall.SP>>32 == 0 {
		walk.Flags |= kcdata.UserCompat
		w.Record(kcdata.TypeLinuxUserWalk, &walk)
		return
	}
	stack, err := r.copyStack(lx, t, &walk)
	switch {
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		u.refused.Add(1)
		return
	case errors.Is(err, unix.ESRCH):
		walk.Flags |= kcdata.UserNoMemory
	case err != nil && !errors.Is(err, unix.EFAULT):
		u.late.Add(1)
		return
	}
	w.Record(kcdata.TypeLinuxUserWalk, &walk)
	if len(stack) > 0 {
		w.PutBytes(kcdata.TypeLinuxUserBytes, kcdata.UserBytes{Addr: t.Syscall.SP, Data: stack}.Append(nil))
	}
}

var errNoTime = errors.New("the time for user stacks is spent")

// copyStack copies a thread's stack, from its stack pointer on. The result is empty if the
// thread has run meanwhile.
func (r *reader) copyStack(lx *kcdata.LinuxThread, t *procfs.Thread, walk *kcdata.LinuxUserWalk) ([]byte, error) {
	if r.user.left.Load() <= 0 {
		return nil, errNoTime
	}
	began := time.Now()
	defer func() {
		took := time.Since(began)
		r.user.left.Add(-int64(took))
		walk.WalkNs = uint32(min(took, 1<<32-1))
	}()
	sp, size := t.Syscall.SP, uint64(r.user.bytes)
	// Above StartStack lie arguments and environment; an unwinder looks two words farther.
	if end := t.Stat.StartStack + 16; sp < end && end-sp < size {
		size = end - sp
	}
	// By its own number: the first thread may have ended, and has no memory then.
	read := func(buf []byte) ([]byte, error) { return readMemory(buf, t.Tid, sp, int(size)) }
	stack, err := r.engine.bounded(read)
	if err != nil {
		return nil, err
	}
	now, err := r.look.Read(int(lx.Tgid), t.Tid)
	if now == nil || now.Have&again != again {
		return nil, errors.Join(err, unix.ESRCH)
	}
	if now.Schedstat.Timeslices != t.Schedstat.Timeslices || now.Syscall != t.Syscall {
		walk.Flags |= kcdata.UserMoved
		return nil, nil
	}
	walk.Bytes = uint32(len(stack))
	return stack, nil
}

// bounded calls read within the time limit of a file, if the engine has one.
func (e *Engine) bounded(read func([]byte) ([]byte, error)) ([]byte, error) {
	if e.proc.Readers == nil {
		return read(nil)
	}
	return e.proc.Readers.Do(read)
}

// readMemory appends memory of a process to buf: as far as it is mapped, in pieces that end at
// page boundaries.
func readMemory(buf []byte, pid int, addr uint64, size int) ([]byte, error) {
	out := make([]byte, size)
	var remote []unix.RemoteIovec
	for at := 0; at < size; {
		n := min(pageSize-int((addr+uint64(at))%pageSize), size-at)
		remote = append(remote, unix.RemoteIovec{Base: uintptr(addr) + uintptr(at), Len: n})
		at += n
	}
	local := []unix.Iovec{{Base: &out[0]}}
	local[0].SetLen(size)
	n, err := unix.ProcessVMReadv(pid, local, remote, 0)
	if err != nil {
		return buf, fmt.Errorf("process_vm_readv: %w", err)
	}
	return append(buf, out[:n]...), nil
}

// say names once what was refused, and what there was no time for.
func (u *userSide) say(c *capture.Raw) {
	if u == nil {
		return
	}
	if n := u.refused.Load(); n > 0 {
		c.Warn(kcdata.WarningUserStacks, fmt.Sprintf("no user stacks of %d threads, which may not be traced: of other users, not dumpable, or by kernel.yama.ptrace_scope (needs CAP_SYS_PTRACE)", n))
	}
	if n := u.late.Load(); n > 0 {
		c.Warn("user_stacks_late", fmt.Sprintf("no user stacks of %d threads: their memory could not be read in time (%v for all)", n, UserBudget))
	}
}
