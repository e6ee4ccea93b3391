package procfs

import (
	"bytes"
	"math"
)

// LockKind is what kind of lock a row of /proc/locks is of.
type LockKind uint8

// The kinds of locks.
const (
	LockUnknown LockKind = iota // of a kind that this version does not know
	LockFlock                   // flock(2)
	LockPOSIX                   // fcntl(F_SETLK): it belongs to a process
	LockOFD                     // fcntl(F_OFD_SETLK): it belongs to an open file description
	LockLease                   // fcntl(F_SETLEASE), and delegations
)

// FileLock is a row of /proc/locks: a lock, or somebody who waits for one.
type FileLock struct {
	Number       uint64 // of the lock; its waiters have the same
	Kind         LockKind
	Waits        int  // 0: has the lock; 1: waits for it; 2: waits for a waiter, and so on
	Write        bool // exclusive
	Breaks       bool // a lease that is being broken
	Pid          int64
	Major, Minor uint32
	Inode        uint64
	Start, End   uint64 // bytes; End is the last one, MaxUint64: to the end of the file
}

// lockKinds are the words of the kernel (lock_get_status of fs/locks.c).
var lockKinds = map[string]LockKind{
	"FLOCK": LockFlock, "POSIX": LockPOSIX, "OFDLCK": LockOFD, "LEASE": LockLease, "DELEG": LockLease,
}

// ParseLocks parses /proc/locks: "1: -> POSIX  ADVISORY  WRITE 812 fe:00:1234 0 EOF". A last
// line without a newline was cut, and does not count. Locks of no file are left out.
func ParseLocks(b []byte) (all []FileLock, err error) {
	for len(b) > 0 {
		line, rest, whole := bytes.Cut(b, []byte("\n"))
		if b = rest; !whole {
			break
		}
		l, ofFile, err := parseLock(line)
		if err != nil {
			return nil, err
		}
		if ofFile {
			all = append(all, l)
		}
	}
	return all, nil
}

// parseLock reads one row. ofFile is false for one that names no file ("<none>:0").
func parseLock(line []byte) (l FileLock, ofFile bool, err error) {
	bad := func(field string) (FileLock, bool, error) {
		return FileLock{}, false, syntaxError("locks", field, line)
	}
	number, rest, _ := bytes.Cut(line, []byte(":"))
	var ok bool
	if l.Number, ok = parseUint(number); !ok {
		return bad("number")
	}
	if before, after, waits := bytes.Cut(rest, []byte("->")); waits {
		if l.Waits = len(before); l.Waits == 0 || len(bytes.TrimLeft(before, " ")) > 0 {
			return bad("arrow")
		}
		rest = after // each level is one blank further in
	}
	f := bytes.Fields(rest)
	if len(f) != 7 {
		return bad("fields")
	}
	l.Kind, l.Breaks, l.Write = lockKinds[string(f[0])], string(f[1]) == "BREAKING" || string(f[1]) == "BREAKER", string(f[2]) == "WRITE"
	if l.Pid, ok = parseInt(f[3]); !ok {
		return bad("pid")
	}
	if bytes.HasPrefix(f[4], []byte("<none>")) {
		return FileLock{}, false, nil
	}
	if !l.file(f[4]) {
		return bad("file")
	}
	if l.Start, ok = parseUint(f[5]); !ok {
		return bad("start")
	}
	if l.End = math.MaxUint64; string(f[6]) != "EOF" {
		if l.End, ok = parseUint(f[6]); !ok {
			return bad("end")
		}
	}
	return l, true, nil
}

// file reads "fe:00:1234": the device in hexadecimal digits, the inode in decimal ones.
func (l *FileLock) file(text []byte) bool {
	f := bytes.Split(text, []byte(":"))
	if len(f) != 3 {
		return false
	}
	major, ok1 := parseHex(f[0])
	minor, ok2 := parseHex(f[1])
	inode, ok3 := parseUint(f[2])
	l.Major, l.Minor, l.Inode = uint32(major), uint32(minor), inode
	return ok1 && ok2 && ok3 && major <= math.MaxUint32 && minor <= math.MaxUint32
}

// Device is a block device by /proc/partitions.
type Device struct {
	Major, Minor uint32
	Name         string
}

// ParsePartitions parses /proc/partitions: a heading, an empty line, and "254 0 268435456 vda"
// for each device.
func ParsePartitions(b []byte) (all []Device, err error) {
	for line := range bytes.Lines(b) {
		s := scanner{file: "partitions", rest: line}
		if !s.more() || bytes.HasPrefix(s.rest, []byte("major")) {
			continue
		}
		d := Device{Major: s.u32(), Minor: s.u32()}
		s.uint()
		d.Name = string(s.next())
		if s.err == nil && d.Name == "" {
			s.fail(nil)
		}
		if s.err != nil {
			return nil, s.err
		}
		all = append(all, d)
	}
	return all, nil
}
