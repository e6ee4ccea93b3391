package ends

import (
	"bytes"
	"errors"
	"io"
	"os"
	"sync/atomic"
	"time"

	"stackshot/internal/procfs"
	"stackshot/kcdata"
)

// Size limits of files, bytes.
const (
	maxLocks      = 16 << 20
	maxMountinfo  = 16 << 20
	maxPartitions = 1 << 20
	maxFUSE       = 1 << 20 // the list of connections
)

// mostDevices bounds the block devices of a file.
const mostDevices = 1 << 13

// around reads what stands beside the descriptors: locks, mounts, block devices, FUSE's sums.
// It ends when its time is up; a read that hangs is given up before (procfs.Readers).
func (l *Looker) around(w *Wants, until time.Time, pieces chan<- found) {
	own := l.ownMounts()
	pieces <- own.piece()
	for _, step := range []func() found{
		func() found { return l.locks(w, until) },
		func() found { return l.devices() },
		func() found { return l.foreignMounts(w, own, until) },
		func() found { return l.connections(own, until) },
	} {
		if !time.Now().Before(until) {
			return
		}
		pieces <- step()
	}
}

// nothing is what a read that failed gives. A read that hangs is said.
func nothing(err error) found {
	return func(r *Result) {
		if errors.Is(err, procfs.ErrTimeout) || errors.Is(err, procfs.ErrExhausted) {
			r.Taken.Flags |= kcdata.FilesHung
		}
	}
}

// locks reads /proc/locks, if a thread waits for a lock. The kernel lists the locks in portions of a
// page, and holds up all changes of locks for each (locks_start of fs/locks.c): so the list is read as
// far as it comes in half of the time.
func (l *Looker) locks(w *Wants, until time.Time) found {
	if len(w.Locks) == 0 {
		return nothing(nil)
	}
	b, whole, err := l.readSlowly("locks", maxLocks, until)
	if err != nil {
		return nothing(err)
	}
	rows, err := procfs.ParseLocks(b)
	if err != nil {
		return nothing(err)
	}
	var list []kcdata.LinuxFileLock
	for i := range rows {
		if at := (FileID{device(rows[i].Major, rows[i].Minor), rows[i].Inode}); w.Locks[at] {
			list = append(list, lockRecord(&rows[i], l.began(w, rows[i].Pid)))
		}
	}
	return func(r *Result) {
		r.Locks = list
		if whole {
			r.Taken.Sources |= kcdata.FilesHasLocks
		}
	}
}

var lockKinds = map[procfs.LockKind]uint32{
	procfs.LockFlock: kcdata.FileLockFlock, procfs.LockPOSIX: kcdata.FileLockPOSIX, procfs.LockOFD: kcdata.FileLockOFD,
	procfs.LockLease: kcdata.FileLockLease, procfs.LockUnknown: kcdata.FileLockUnknown,
}

func lockRecord(l *procfs.FileLock, began uint64) kcdata.LinuxFileLock {
	v := kcdata.LinuxFileLock{
		Number: uint32(l.Number), Kind: lockKinds[l.Kind], Dev: device(l.Major, l.Minor), Inode: l.Inode, Start: l.Start, End: l.End, Began: began,
	}
	if l.Pid > 0 {
		v.Tgid = uint32(l.Pid)
	}
	for _, bit := range []struct {
		set  bool
		flag uint32
	}{{l.Write, kcdata.FileLockWrite}, {l.Waits > 0, kcdata.FileLockWaits}, {l.Waits > 1, kcdata.FileLockNested}, {l.Breaks, kcdata.FileLockBreaks}} {
		if bit.set {
			v.Flags |= bit.flag
		}
	}
	return v
}

// began is when a process started, if it is the one of the capture; else 0.
func (l *Looker) began(w *Wants, pid int64) uint64 {
	p, ok := w.Processes[uint32(max(pid, 0))]
	if !ok || pid <= 0 {
		return 0
	}
	if st, err := l.Proc.Stat(int(pid)); err != nil || !st.StartedAt(p.Start) {
		return 0
	}
	return p.Start
}

// readSlowly reads a file of /proc until its end, or as long as the readers' limit surely allows.
func (l *Looker) readSlowly(name string, most int, until time.Time) (b []byte, whole bool, err error) {
	stop := time.Now().Add(slowRead)
	if stop.After(until) {
		stop = until
	}
	var all atomic.Bool
	root := l.root()
	b, err = l.do(func(buf []byte) ([]byte, error) {
		f, err := os.Open(root + "/" + name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		out := bytes.NewBuffer(buf)
		for out.Len() < most && time.Now().Before(stop) {
			if n, err := io.CopyN(out, f, 64<<10); err == io.EOF && n == 0 || err == io.EOF {
				all.Store(true)
				break
			} else if err != nil {
				return nil, err
			}
		}
		return out.Bytes(), nil
	})
	return b, all.Load(), err
}

// slowRead is shorter than the limit of a read (procfs.DefaultLimit).
const slowRead = 150 * time.Millisecond

func (l *Looker) root() string {
	if l.Proc.Root == "" {
		return "/proc"
	}
	return l.Proc.Root
}

// do runs fn under the readers' limit.
func (l *Looker) do(fn func([]byte) ([]byte, error)) ([]byte, error) {
	if l.Proc.Readers == nil {
		return fn(nil)
	}
	return l.Proc.Readers.Do(fn)
}

// read reads one file of /proc.
func (l *Looker) read(dir string, f procfs.File) ([]byte, error) {
	files := []procfs.File{f}
	l.Proc.Read(dir, files)
	return files[0].Data, files[0].Err
}

// device is a number as the file has it: major<<32 | minor.
func device(major, minor uint32) uint64 { return uint64(major)<<32 | uint64(minor) }

// devices reads the names of block devices.
func (l *Looker) devices() found {
	b, err := l.read("", procfs.File{Name: "partitions", Max: maxPartitions})
	if err != nil {
		return nothing(err)
	}
	all, err := procfs.ParsePartitions(b)
	if err != nil {
		return nothing(err)
	}
	list := make([]kcdata.LinuxDevice, min(len(all), mostDevices))
	for i := range list {
		list[i].Dev = device(all[i].Major, all[i].Minor)
		clip(list[i].Name[:], all[i].Name)
	}
	return func(r *Result) {
		r.Devices = list
		r.Taken.Sources |= kcdata.FilesHasDevices
	}
}

// clip copies s with a NUL behind it, and reports whether it did not fit.
func clip(to []byte, s string) bool {
	n := copy(to[:len(to)-1], s)
	return n < len(s)
}
