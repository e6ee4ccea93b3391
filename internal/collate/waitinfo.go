package collate

import (
	"stackshot/internal/futex"
	"stackshot/kcdata"
)

// Apple's record of a wait, THREAD_WAITINFO, for the kinds that it has. The owner is a thread's
// number, of a semaphore that of its process; 0: not known.

// lockInfo is the record of a thread that waits for a lock of the kernel, without the waiter. A PI
// futex is a lock of user memory there.
func lockInfo(w *kcdata.LinuxWait, x *futex.Index) (info kcdata.ThreadWaitinfo, ok bool) {
	if w.Flags&kcdata.WaitPI != 0 {
		return info, false
	}
	info.Context = w.Lock
	switch w.Kind {
	case kcdata.LockMutex, kcdata.LockRTMutex:
		info.WaitType = kcdata.HintKernelMutex
	case kcdata.LockSemaphore:
		info.WaitType = kcdata.HintSemaphore
	case kcdata.LockRWSemRead:
		info.WaitType = kcdata.HintKernelRWLockRead
	case kcdata.LockRWSemWrite:
		info.WaitType = kcdata.HintKernelRWLockWrite
	default: // LockRWSem: whether it reads or writes is not known
		return info, false
	}
	if known := kernelOwner(w, x); known && w.Kind == kcdata.LockSemaphore {
		info.Owner = uint64(w.OwnerTgid)
	} else if known {
		info.Owner = uint64(w.OwnerTid)
	}
	return info, true
}

// kernelOwner reports whether the file has the thread that the kernel names.
func kernelOwner(w *kcdata.LinuxWait, x *futex.Index) bool {
	return w.Flags&(kcdata.WaitOwned|kcdata.WaitLastHolder) != 0 && w.OwnerTid != 0 && x.Is(w.OwnerTid, w.OwnerStart)
}

// futexType is Apple's type for what f's bytes are; 0: it has none.
func futexType(f *kcdata.LinuxFutex) uint8 {
	switch f.Object {
	case kcdata.FutexGlibcMutex, kcdata.FutexMuslMutex, kcdata.FutexMuslNormal, kcdata.FutexPIWord:
		return kcdata.HintPthreadMutex
	case kcdata.FutexGlibcRWLock:
		for _, r := range futex.Read(f) {
			if r.Object == f.Object && r.Write {
				return kcdata.HintPthreadRWLockWrite
			}
		}
		return kcdata.HintPthreadRWLockRead
	}
	return 0
}

// futexInfo is the record of a thread that waits for one lock of user memory, without the
// waiter.
func futexInfo(f *kcdata.LinuxFutex, wants uint8, w *kcdata.LinuxWait, x *futex.Index) (info kcdata.ThreadWaitinfo, ok bool) {
	if wants == 0 || f.Flags&kcdata.FutexWaitv != 0 {
		return info, false
	}
	info = kcdata.ThreadWaitinfo{Context: f.Addr, WaitType: wants}
	switch {
	case w.Flags&kcdata.WaitPI != 0 && kernelOwner(w, x):
		info.Owner = uint64(w.OwnerTid)
	case f.Flags&kcdata.FutexOwned != 0:
		info.Owner = uint64(f.OwnerTid)
	}
	return info, true
}
