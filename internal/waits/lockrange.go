package waits

import (
	"cmp"
	"math"

	"stackshot/kcdata"
)

// Operations of flock(2) and types of struct flock.
const (
	flockShared = 1 // LOCK_SH
	fcntlRead   = 0 // F_RDLCK
)

func bit(kind uint32) uint32 { return 1 << (kind & 31) }

// lockKindsOf are the kinds of locks that may be in the way of a wait at file, a bit for each:
// locks of flock(2) and those of fcntl(2) do not see each other.
func lockKindsOf(file *kcdata.LinuxFile) uint32 {
	if file.Op == kcdata.FileOpFlock {
		return bit(kcdata.FileLockFlock)
	}
	return bit(kcdata.FileLockPOSIX) | bit(kcdata.FileLockOFD)
}

func wantsWrite(file *kcdata.LinuxFile) bool {
	if file.Op == kcdata.FileOpFlock {
		return file.LockHow&flockShared == 0
	}
	return file.LockHow&0xffff != fcntlRead
}

// overlaps reports whether r is of a part of the file that a wait is for. A range that does not
// begin at a known place may be anywhere.
func overlaps(file *kcdata.LinuxFile, r *kcdata.LinuxFileLock) bool {
	if file.Op == kcdata.FileOpFlock || file.LockHow>>16 != seekSet {
		return true
	}
	start, end := file.LockStart, uint64(math.MaxUint64)
	switch n := int64(file.LockLen); {
	case n > 0 && start <= math.MaxInt64:
		end = start + uint64(n) - 1
	case n < 0:
		back := uint64(-n)
		if back > start {
			return true // the kernel refuses it
		}
		start, end = start-back, start-1
	}
	return start <= r.End && r.Start <= end
}

// compareRows is an order that the file's does not decide.
func compareRows(a, b *kcdata.LinuxFileLock) int {
	return cmp.Or(cmp.Compare(a.Tgid, b.Tgid), cmp.Compare(a.Began, b.Began), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End))
}

// oneLock reports whether all owners of l have one and the same open file description, which a
// fork shares: then any of them can let the lock go.
func (f *finder) oneLock(l *look, held *side) bool {
	var one uint64
	for i := range held.who {
		h := &held.who[i]
		for _, o := range l.owners {
			if o.Pid != h.owner.Pid {
				continue
			}
			if h.file == 0 || h.kinds&bit(kcdata.FileLockPOSIX) != 0 || one != 0 && one != h.file {
				return false
			}
			one = h.file
		}
	}
	return one != 0
}
