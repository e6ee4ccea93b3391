package waits

import (
	"cmp"
	"slices"

	"stackshot/kcdata"
)

// part is what an end has to do with the file of which it is an end.
type part uint8

const (
	writes  part = iota // the same pipe, opened to write
	reads               // the same pipe, opened to read
	peers               // the other side of a connection, a terminal
	listens             // a socket that listens for connections as this one
	accepts             // a socket at which the connection lies, and nobody has accepted it
	crowded             // a unix socket in whose queue there is no room for what is sent
	shares              // the same object: an eventfd
	locks               // it has a lock on the file
	serves              // it answers what is asked: a FUSE server, a pager
)

// isOf reports whether e has part p.
func (p part) isOf(e *kcdata.LinuxEnd) bool {
	has := func(bits uint32) bool { return e.Flags&bits != 0 }
	same := e.Object == e.Of || has(kcdata.EndSame)
	switch p {
	case writes:
		return same && has(kcdata.EndWrites)
	case reads:
		return same && has(kcdata.EndReads)
	case peers:
		return has(kcdata.EndPeer|kcdata.EndPair) && !has(kcdata.EndListens)
	case listens:
		return has(kcdata.EndListens)
	case accepts:
		return has(kcdata.EndListens) && (has(kcdata.EndAccepts) || e.Backlog > 0)
	case crowded:
		return has(kcdata.EndRoom)
	case shares:
		return same && !has(kcdata.EndLocks)
	case locks:
		return has(kcdata.EndLocks)
	}
	return has(kcdata.EndServes) || e.Kind == kcdata.FileFUSE || e.Kind == kcdata.FileUserfaultfd
}

// list is a list of ends, linked by their places in the snapshot; -1 ends it.
type list struct {
	head map[uint64]int32
	next []int32
}

// ends is the index of a snapshot's ends. It is made in one pass, and what the ends of one
// object amount to is found out once, however many threads wait at it.
type ends struct {
	all     []kcdata.LinuxEnd
	of      list // by Of
	fuse    list // servers of FUSE, by Dev
	pagers  list // userfaultfds, by the process (tgid) whose memory they serve
	sides   map[sideKey]*side
	visits  int                 // how often an end was looked at, for the tests
	far     map[uint64]bool     // by object: who has its other end listens
	descs   map[uint64]uint32   // descriptors found, by the open file description
	calls   map[uint64]uint32   // threads in a call with it: each may have a reference more
	reading map[uint64]struct{} // objects that threads wait to read from, as the window has it
	ports   map[port]struct{}   // of listening TCP sockets
	locals  map[[16]byte]struct{}
	mounts  map[uint64][]int32 // by the number of the device
	devices map[uint64]string  // names of block devices
	locked  map[inode][]int32  // rows of /proc/locks that have a lock; one more than maxOwners: there are too many
	asked   map[uint32]int32   // unanswered requests of FUSE, by who asks
}

type port struct {
	ns   uint32
	port uint16
}

type inode struct{ dev, ino uint64 }

func newEnds(s *kcdata.Snapshot) *ends {
	x := &ends{
		all: s.Ends, sides: map[sideKey]*side{}, far: map[uint64]bool{}, descs: make(map[uint64]uint32, len(s.Ends)), calls: map[uint64]uint32{},
		reading: map[uint64]struct{}{}, ports: map[port]struct{}{}, locals: map[[16]byte]struct{}{},
	}
	x.of, x.fuse, x.pagers = newList(len(s.Ends)), newList(0), newList(0)
	if slices.ContainsFunc(s.Ends, func(e kcdata.LinuxEnd) bool { return e.Kind == kcdata.FileFUSE || e.Kind == kcdata.FileUserfaultfd }) {
		x.fuse, x.pagers = newList(len(s.Ends)), newList(len(s.Ends))
	}
	for i := range s.Ends {
		x.add(int32(i), &s.Ends[i])
	}
	for _, task := range s.Tasks {
		for _, t := range task.Threads {
			x.addCall(task, t)
		}
	}
	x.addTables(s)
	return x
}

func newList(n int) list { return list{map[uint64]int32{}, make([]int32, n)} }

func (l *list) add(k uint64, i int32) {
	before, ok := l.head[k]
	if !ok {
		before = -1
	}
	l.next[i], l.head[k] = before, i
}

func (x *ends) add(i int32, e *kcdata.LinuxEnd) {
	x.of.add(e.Of, i)
	switch e.Kind {
	case kcdata.FileFUSE:
		x.fuse.add(e.Dev, i)
	case kcdata.FileUserfaultfd:
		x.pagers.add(uint64(e.Backlog), i)
	}
	if e.File != 0 {
		x.descs[e.File]++
	}
	if e.Flags&kcdata.EndListens != 0 {
		x.listen(e.Family, e.NetNS, e.Port)
	}
	if e.Local != ([16]byte{}) {
		x.locals[e.Local] = struct{}{}
	}
}

// addCall takes what a thread's call says of others: at what it reads, and at what its process
// listens.
func (x *ends) addCall(task *kcdata.Task, t *kcdata.Thread) {
	for i := range t.Files {
		file := &t.Files[i]
		if file.File != 0 {
			x.calls[file.File]++
		}
		if file.Flags&kcdata.FileToRead != 0 && file.Object != 0 {
			x.reading[file.Object] = struct{}{}
		}
	}
	for i := range t.Sockets {
		if s := &t.Sockets[i]; s.Flags&kcdata.SocketListens != 0 {
			x.listen(s.Family, s.NetNS, s.LocalPort)
		}
		if a := t.Sockets[i].Local; a != ([16]byte{}) {
			x.locals[a] = struct{}{}
		}
	}
}

// Families of sockets (include/linux/socket.h).
const (
	afUnix    = 1
	afInet    = 2
	afInet6   = 10
	afNetlink = 16
	afVsock   = 40
)

func (x *ends) listen(family uint16, ns uint32, p uint16) {
	if (family == afInet || family == afInet6) && p != 0 {
		x.ports[port{ns, p}] = struct{}{}
	}
}

func (x *ends) addTables(s *kcdata.Snapshot) {
	x.mounts, x.locked, x.asked = map[uint64][]int32{}, map[inode][]int32{}, map[uint32]int32{}
	x.devices = map[uint64]string{}
	for i := range s.Devices {
		if name := text(s.Devices[i].Name[:]); name != "" {
			once(x.devices, s.Devices[i].Dev, name)
		}
	}
	for i := range s.Mounts {
		x.mounts[s.Mounts[i].Dev] = append(x.mounts[s.Mounts[i].Dev], int32(i))
	}
	for i := range s.FileLocks {
		k := inode{s.FileLocks[i].Dev, s.FileLocks[i].Inode}
		if s.FileLocks[i].Flags&kcdata.FileLockWaits == 0 && len(x.locked[k]) <= maxOwners {
			x.locked[k] = append(x.locked[k], int32(i))
		}
	}
	for i := range s.FUSE {
		if q := &s.FUSE[i]; q.Tid != 0 && q.Flags&(kcdata.FUSEForeign|kcdata.FUSESums) == 0 {
			at, ok := x.asked[q.Tid]
			if !ok || cmp.Or(cmp.Compare(q.Dev, s.FUSE[at].Dev), cmp.Compare(q.Unique, s.FUSE[at].Unique)) < 0 {
				x.asked[q.Tid] = int32(i)
			}
		}
	}
}
