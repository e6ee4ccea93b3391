package waits

import (
	"slices"

	"stackshot/kcdata"
)

// fileLock is for who waits for a lock on a file: for all who have one that is in the way.
// Who has it is in the kernel's own list of the file's locks; /proc/locks is the second source,
// which does not say who has a lock of an open file description.
func (f *finder) fileLock(w *Wait, l *look) {
	file := l.file
	if file.Object == 0 {
		l.says = NotLooked
		return
	}
	l.resource = Resource{Kind: FileLock, Task: lockedFrom(file), ID: file.Object}
	if !f.still(l) {
		return
	}
	held := f.side(byObject, locks, file.Object)
	rows := f.lockRows(file)
	if !f.byList(w, l, held, rows) {
		f.byRows(w, l, rows)
	}
	l.all = true
	switch {
	case len(l.owners) > 0:
		l.owes, l.all = true, !f.oneLock(l, held)
	case l.says == "":
		l.says = f.nobody()
		if f.s.FilesTaken == nil || f.s.FilesTaken.Sources&kcdata.FilesHasLocks == 0 {
			l.says = NotLooked
		}
	}
}

// lockedFrom tells locks on parts of one file apart: 1 + the first byte; 0: all of it.
func lockedFrom(file *kcdata.LinuxFile) uint64 {
	if file.Op == kcdata.FileOpFlock || file.LockHow>>16 != seekSet || file.LockStart == 0 {
		return 0
	}
	return 1 + file.LockStart
}

const seekSet = 0

// byList takes the kernel's list of locks. A lock of the file that is of another kind, or on
// another part of it, is in nobody's way.
func (f *finder) byList(w *Wait, l *look, held *side, rows []*kcdata.LinuxFileLock) bool {
	if held.crowd {
		l.note("more than %d processes have locks on the file, so none is named", maxSide)
		return true
	}
	var mine bool
	for i := range held.who {
		h := &held.who[i]
		own := h.owner.Task == w.Task && h.owner.Task != nil
		switch posix := h.kinds&bit(kcdata.FileLockPOSIX) != 0; {
		case h.kinds&lockKindsOf(l.file) == 0, !posix && l.file.File != 0 && h.file == l.file.File:
			continue
		case own && posix && l.file.Op == kcdata.FileOpPOSIX:
			continue // a process is not in its own way
		}
		if h.kinds == bit(kcdata.FileLockPOSIX) && !f.inTheWay(h.owner.Pid, rows) {
			continue
		}
		if own {
			mine = true
			continue
		}
		l.owners = append(l.owners, held.owed[i])
	}
	if len(l.owners) == 0 && !mine {
		return false
	}
	l.evidence, l.free = After, held.strangers > 0 || held.younger > 0 || held.tool
	if !l.free && l.file.Flags&kcdata.FileCatches == 0 {
		l.confidence = Sure
	}
	if mine {
		f.mine(w, l, Holds)
		if l.says == OwnEnd {
			l.note("its own process has the lock, by another open file")
		}
	}
	return true
}

// inTheWay reports whether rows, which are those in the way of a wait, have one of tgid; without
// rows nobody knows, and it may be.
func (f *finder) inTheWay(tgid uint32, rows []*kcdata.LinuxFileLock) bool {
	return len(rows) == 0 || slices.ContainsFunc(rows, func(r *kcdata.LinuxFileLock) bool { return r.Tgid == tgid })
}

// byRows takes /proc/locks: who has a POSIX lock, and who took one of flock, and may have ended
// or given the file away since.
func (f *finder) byRows(w *Wait, l *look, rows []*kcdata.LinuxFileLock) {
	for _, r := range rows {
		if r.Tgid == 0 || len(l.owners) > maxSide {
			continue
		}
		o, is := f.process(r.Tgid, r.Began, Holds)
		if is != isHere || o.Task == w.Task || slices.ContainsFunc(l.owners, func(p Owner) bool { return p.Task == o.Task }) {
			continue
		}
		o.Owes = true
		l.owners = append(l.owners, o)
		l.evidence, l.free = After, false
	}
	if len(l.owners) > maxSide {
		l.note("more than %d processes have locks on the file, so none is named", maxSide)
		l.owners = nil
	}
}

// lockRows are the rows of /proc/locks that are in the way of a wait at file.
func (f *finder) lockRows(file *kcdata.LinuxFile) (out []*kcdata.LinuxFileLock) {
	all := f.ends.locked[inode{file.Dev, file.Inode}]
	if len(all) > maxOwners {
		return nil
	}
	for _, i := range all {
		r := &f.s.FileLocks[i]
		if bit(r.Kind)&lockKindsOf(file) == 0 || !overlaps(file, r) {
			continue
		}
		if r.Flags&kcdata.FileLockWrite != 0 || wantsWrite(file) {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, compareRows)
	return out
}
