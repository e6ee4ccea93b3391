package waits

import "stackshot/kcdata"

// lockKinds are the kinds of kcdata.Lock*.
var lockKinds = map[uint32]Kind{
	kcdata.LockMutex: Mutex, kcdata.LockSemaphore: Semaphore, kcdata.LockRTMutex: RTMutex,
	kcdata.LockRWSem: RWSem, kcdata.LockRWSemRead: RWSemRead, kcdata.LockRWSemWrite: RWSemWrite,
}

// lockOf is the kind of a resource that threads wait for in a wait of kind k: readers and
// writers wait for the same rwsem.
func lockOf(k Kind) Kind {
	if k == RWSemRead || k == RWSemWrite {
		return RWSem
	}
	return k
}

// kernelLock takes what the kernel's own memory says. A field is sure. So is a scan that ended
// at a lock with a verified owner: the waiter record is linked on both sides, a return address
// lies in that kind's slow path, and the lock's owner word leads to a thread with the number
// and the start of one in the file, all while the machine stood still; a stale record has no
// neighbours that point back. A scan without an owner lacks the last of these, and is likely.
// The mutex of a file's position is told by the function that takes it, which takes no other.
func (f *finder) kernelLock(w *Wait, names []*marks) bool {
	r := w.Thread.Wait
	if r == nil || r.Flags&(kcdata.WaitField|kcdata.WaitScan|kcdata.WaitPI) == 0 {
		return false
	}
	kind, ok := lockKinds[r.Kind]
	if r.Flags&kcdata.WaitPI != 0 && r.Flags&kcdata.WaitField == 0 {
		if f.piFutex(w.Thread) {
			return false // futex has it, with the kernel's owner
		}
		kind, ok = RTMutex, true
	}
	if !ok {
		return false
	}
	if place, _ := match(names); place == FilePosition {
		kind = place
	}
	w.Kind = kind
	if r.Lock != 0 {
		w.Resource = Resource{Kind: lockOf(kind), ID: r.Lock}
	}
	f.lockOwner(w, r)
	if r.Flags&(kcdata.WaitField|kcdata.WaitPI) == 0 {
		w.Evidence = Scan
		if r.Scan != kcdata.ScanFound || len(w.Owners) == 0 || w.Owners[0].Thread == nil {
			w.Confidence = Likely
		}
	}
	return true
}

// lockOwner names who has the lock that r is about.
func (f *finder) lockOwner(w *Wait, r *kcdata.LinuxWait) {
	switch {
	case r.Flags&kcdata.WaitReaders != 0:
		w.note("readers hold it; the kernel does not keep their names")
	case r.Flags&kcdata.WaitFree != 0:
		w.note("the lock had no owner when it was read")
	case r.Flags&kcdata.WaitBadOwner != 0:
		w.note("the lock's owner word does not lead to a task")
	case r.Flags&kcdata.WaitLastHolder != 0:
		w.Confidence = Likely
		if r.OwnerTid != 0 {
			w.own(f.find(r.OwnerTid, r.OwnerTgid, r.OwnerStart, Last))
		}
	case r.Flags&kcdata.WaitOwned != 0:
		w.own(f.find(r.OwnerTid, r.OwnerTgid, r.OwnerStart, Holds))
	}
}

// piFutex reports whether t's rt_mutex is that of a futex with priority inheritance.
func (f *finder) piFutex(t *kcdata.Thread) bool {
	return len(t.Futexes) == 1 && t.Futexes[0].Flags&kcdata.FutexPI != 0
}
