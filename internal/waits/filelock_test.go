package waits

import (
	"testing"

	"stackshot/kcdata"
)

// Locks of files: the kernel's own list of holders goes first, then /proc/locks; all who have one
// in the way must let it go.
func TestFileLocks(t *testing.T) {
	flock := kcdata.LinuxFile{Flags: still, Op: kcdata.FileOpFlock, Kind: kcdata.FileRegular, Object: 500, File: 1, Inode: 44, Dev: 8<<32 | 1, LockHow: 2}
	posix := change(flock, func(f *kcdata.LinuxFile) { f.Op, f.LockHow, f.LockStart, f.LockLen = kcdata.FileOpPOSIX, 1, 100, 10 })
	ofd := change(posix, func(f *kcdata.LinuxFile) { f.Op = kcdata.FileOpOFD })
	row := func(kind, tgid uint32, start_, end uint64) kcdata.LinuxFileLock {
		return kcdata.LinuxFileLock{Kind: kind, Flags: kcdata.FileLockWrite, Tgid: tgid, Dev: 8<<32 | 1, Inode: 44, Start: start_, End: end, Began: start(tgid)}
	}
	rows := func(r ...kcdata.LinuxFileLock) func(w *world, th *kcdata.Thread) {
		return func(w *world, th *kcdata.Thread) { w.s.FileLocks = r }
	}
	const toEnd = ^uint64(0)
	for _, c := range []story{
		{"flock", inFlock, 0, files(flock), nil, theEnds(lockEnd(20, 500, 77, kcdata.FileLockFlock)), nil, FileLock, "holds 20!$", false, 0, "", Sure, After, ""},
		{"two share it", inFlock, 0, files(flock), nil, theEnds(lockEnd(20, 500, 77, kcdata.FileLockFlock), lockEnd(21, 500, 78, kcdata.FileLockFlock)), nil, FileLock, "holds 20!$, holds 21!$", false, 0, "", Sure, After, ""},
		{"one open file of two processes", inFlock, 0, files(flock), nil, theEnds(lockEnd(20, 500, 77, kcdata.FileLockFlock), lockEnd(21, 500, 77, kcdata.FileLockFlock)), nil, FileLock, "holds 20!$, holds 21!$", true, 0, "", Sure, After, ""},
		{"its own shared lock", inFlock, 0, files(flock), nil, theEnds(lockEnd(10, 500, 1, kcdata.FileLockFlock), lockEnd(20, 500, 77, kcdata.FileLockFlock)), nil, FileLock, "holds 20!$", false, 0, "", Sure, After, ""},
		{"by another open file of its own", inFlock, 0, files(flock), nil, theEnds(lockEnd(10, 500, 77, kcdata.FileLockFlock)), nil, FileLock, "holds 10!", false, 0, OwnEnd, Likely, After, "by another open file"},
		{"flock, /proc/locks alone", inFlock, 0, files(flock), nil, nil, rows(row(kcdata.FileLockFlock, 20, 0, toEnd)), FileLock, "holds 20!$", false, 0, "", Likely, After, ""},
		{"flock does not see fcntl", inFlock, 0, files(flock), nil, theEnds(lockEnd(20, 500, 77, kcdata.FileLockPOSIX)), nil, FileLock, "", false, 0, NotFound, Sure, File, ""},
		{"POSIX", inFlock, 0, files(posix), nil, theEnds(lockEnd(20, 500, 77, kcdata.FileLockPOSIX)), nil, FileLock, "holds 20!$", false, 0, "", Sure, After, ""},
		{"POSIX, of two the one in the way", inFlock, 0, files(posix), nil, theEnds(lockEnd(20, 500, 77, kcdata.FileLockPOSIX), lockEnd(21, 500, 78, kcdata.FileLockPOSIX)),
			rows(row(kcdata.FileLockPOSIX, 20, 0, 99), row(kcdata.FileLockPOSIX, 21, 109, 300)), FileLock, "holds 21!$", false, 0, "", Sure, After, ""},
		{"POSIX, its own", inFlock, 0, files(posix), nil, theEnds(lockEnd(10, 500, 77, kcdata.FileLockPOSIX), lockEnd(20, 500, 77, kcdata.FileLockPOSIX)), nil, FileLock, "holds 20!$", false, 0, "", Sure, After, ""},
		{"POSIX, rows alone", inFlock, 0, files(posix), nil, nil, rows(row(kcdata.FileLockPOSIX, 20, 100, toEnd), row(kcdata.FileLockPOSIX, 21, 110, toEnd)), FileLock, "holds 20!$", false, 0, "", Likely, After, ""},
		{"OFD", inFlock, 0, files(ofd), nil, theEnds(lockEnd(20, 500, 77, kcdata.FileLockOFD)), rows(row(kcdata.FileLockOFD, 0, 0, toEnd)), FileLock, "holds 20!$", false, 0, "", Sure, After, ""},
		{"OFD, rows name nobody", inFlock, 0, files(ofd), nil, nil, rows(row(kcdata.FileLockOFD, 0, 0, toEnd)), FileLock, "", false, 0, NotFound, Sure, File, ""},
		{"another start", inFlock, 0, files(posix), nil, nil, rows(func() kcdata.LinuxFileLock { r := row(kcdata.FileLockPOSIX, 20, 0, toEnd); r.Began++; return r }()), FileLock, "", false, 0, NotFound, Sure, File, ""},
		{"gone on", inFlock, 0, files(change(flock, func(f *kcdata.LinuxFile) { f.Flags = kcdata.FileMoved })), nil, theEnds(lockEnd(20, 500, 77, kcdata.FileLockFlock)), nil, FileLock, "", false, 0, NotLooked, Sure, File, "gone on"},
		{"a handler", inFlock, 0, files(change(flock, func(f *kcdata.LinuxFile) { f.Flags |= kcdata.FileCatches })), nil, theEnds(lockEnd(20, 500, 77, kcdata.FileLockFlock)), nil, FileLock, "holds 20!$", false, 0, "", Likely, After, ""},
	} {
		got := c.run(t)
		want := Resource{Kind: FileLock, ID: 500}
		if c.files[0].Op != kcdata.FileOpFlock {
			want.Task = 101
		}
		if got.Resource != want {
			t.Errorf("%s: %+v, want %+v", c.name, got.Resource, want)
		}
	}
}

// Ranges, as struct flock has them.
func TestLockRanges(t *testing.T) {
	for _, c := range []struct {
		how        uint32
		start, len uint64
		from, to   uint64
		want       bool
	}{
		{1, 0, 0, 5, 6, true}, {1, 7, 0, 5, 6, false}, {1, 0, 5, 5, 6, false}, {1, 0, 6, 5, 6, true},
		{1, 10, ^uint64(4) + 1, 5, 6, true}, {1, 10, ^uint64(2) + 1, 5, 6, false}, {1, 1, ^uint64(9), 5, 6, true},
		{1, 6, 1, 5, 6, true}, {1, 10, ^uint64(3) + 1, 5, 6, false}, {1, 10, ^uint64(10) + 1, 5, 6, true}, {1, 10, ^uint64(9) + 1, 11, 12, false},
		{1 | 1<<16, 7, 1, 5, 6, true}, {1 | 2<<16, 0, 1, 5, 6, true}, {1, ^uint64(0), ^uint64(0) >> 1, 0, ^uint64(0), true}, {1, 5, 1 << 63, 0, 0, true},
	} {
		f := kcdata.LinuxFile{Op: kcdata.FileOpPOSIX, LockHow: c.how, LockStart: c.start, LockLen: c.len}
		if got := overlaps(&f, &kcdata.LinuxFileLock{Start: c.from, End: c.to}); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
