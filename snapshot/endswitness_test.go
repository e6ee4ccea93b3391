package snapshot

import (
	"fmt"
	"maps"
	"math"
	"net/netip"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"stackshot/internal/testfiles"
	"stackshot/internal/testneed"
	"stackshot/kcdata"
)

// standing is a capture of the fixture of open files.
type standing struct {
	*testfiles.Fixture
	snap    *kcdata.Snapshot
	threads map[uint64]*kcdata.Thread
}

// TestEndsAgreeWithWitnesses: what a capture says of files, of sockets, of who has their
// other ends and of locks is what outside programs say, end by end.
func TestEndsAgreeWithWitnesses(t *testing.T) {
	testneed.Live(t)
	requireBPF(t)
	s := &standing{Fixture: testfiles.Start(t)}
	_, s.snap, _ = takeWhole(t, Options{UserStacks: UserStacksOff}, Request{Pids: s.pids()})
	s.threads = threadsByID(s.snap)
	wantLooked(t, s.snap)
	t.Run("lsfd", s.lsfd)
	t.Run("ss", s.ss)
	t.Run("lslocks", s.lslocks)
	t.Run("fdinfo", s.fdinfo)
}

// wantLooked wants a pass that looked at everything.
func wantLooked(t *testing.T, s *kcdata.Snapshot) {
	t.Helper()
	const not = kcdata.FilesTimeUp | kcdata.FilesTooMany | kcdata.FilesNoPass | kcdata.FilesHung | kcdata.FilesTooWanted | kcdata.FilesNoLocks
	if s.FilesTaken == nil || s.FilesTaken.Sources&kcdata.FilesHasPass == 0 || s.FilesTaken.Flags&not != 0 {
		t.Fatalf("no whole pass over open files: %+v", s.FilesTaken)
	}
}

// each calls f for every file that the threads of the fixture wait at.
func (s *standing) each(t *testing.T, f func(name string, w *testfiles.Wait, file *kcdata.LinuxFile)) {
	t.Helper()
	n := 0
	for _, w := range s.Waits {
		th := s.threads[uint64(w.Tid)]
		if th == nil {
			t.Errorf("%s: thread %d is not in the file", w.Name, w.Tid)
			continue
		}
		for i := range th.Files {
			if th.Files[i].Fd >= 0 {
				f(fmt.Sprintf("%s, descriptor %d", w.Name, th.Files[i].Fd), w, &th.Files[i])
				n++
			}
		}
	}
	if n < len(s.Waits) {
		t.Errorf("the threads wait at %d files", n)
	}
}

// ends are those of a file that one of the flags says, as users.
func (s *standing) ends(file *kcdata.LinuxFile, flags uint32) (out []testfiles.User) {
	for _, e := range s.snap.Ends {
		if e.Of == file.Object && e.Flags&flags != 0 {
			out = append(out, testfiles.User{Pid: int(e.Tgid), Fd: int(e.Fd)})
		}
	}
	return sorted(out)
}

func sorted(u []testfiles.User) []testfiles.User {
	slices.SortFunc(u, func(a, b testfiles.User) int { return (a.Pid-b.Pid)<<20 + a.Fd - b.Fd })
	return slices.Compact(u)
}

func (s *standing) pids() (pids []int) {
	for _, p := range s.Processes() {
		pids = append(pids, p.Pid)
	}
	return pids
}

// lsfd has the inode, the device and the mode of each, and all who have a pipe or a FIFO open.
func (s *standing) lsfd(t *testing.T) {
	rows := map[testfiles.User]testfiles.Descriptor{}
	for _, d := range testfiles.Lsfd(t, s.pids()...) {
		rows[testfiles.User{Pid: d.Pid, Fd: d.Fd}] = d
	}
	types := map[uint32]string{kcdata.FilePipe: "FIFO", kcdata.FileFIFO: "FIFO", kcdata.FileSocket: "SOCK", kcdata.FileRegular: "REG",
		kcdata.FileTerminal: "CHR", kcdata.FilePTMaster: "CHR"}
	s.each(t, func(name string, w *testfiles.Wait, file *kcdata.LinuxFile) {
		d, ok := rows[testfiles.User{Pid: w.Pid, Fd: int(file.Fd)}]
		if want := types[file.Kind]; !ok || d.Inode != file.Inode || d.Dev != file.Dev || want != "" && want != d.Type {
			t.Errorf("%s: %+v, by lsfd %+v", name, *file, d)
		}
		if file.Kind != kcdata.FilePipe && file.Kind != kcdata.FileFIFO {
			return
		}
		mode, flag := byte('w'), uint32(kcdata.EndWrites)
		if file.Flags&kcdata.FileToWrite != 0 {
			mode, flag = 'r', kcdata.EndReads
		}
		var want []testfiles.User
		for u, e := range rows {
			if e.Type == "FIFO" && e.Inode == file.Inode && e.Dev == file.Dev && slices.Contains([]byte(e.Mode), mode) {
				want = append(want, u)
			}
		}
		if got := s.ends(file, flag); !slices.Equal(got, sorted(want)) {
			t.Errorf("%s: ends %v, by lsfd %v", name, got, sorted(want))
		}
	})
	for _, e := range s.snap.Ends {
		d, ok := rows[testfiles.User{Pid: int(e.Tgid), Fd: int(e.Fd)}]
		if !ok && !slices.Contains(s.pids(), int(e.Tgid)) {
			continue // of somebody else's
		}
		reads, writes := slices.Contains([]byte(d.Mode), 'r'), slices.Contains([]byte(d.Mode), 'w')
		if !ok || d.Inode != e.Inode || reads != (e.Flags&kcdata.EndReads != 0) || writes != (e.Flags&kcdata.EndWrites != 0) {
			t.Errorf("end %+v, by lsfd %+v", e, d)
		}
	}
}

// ss has both ends of each socket, their queues, and all who have the other end open.
func (s *standing) ss(t *testing.T) {
	all := testfiles.Sockets(t)
	of := map[testfiles.User]testfiles.Socket{}
	for _, row := range all {
		for _, u := range row.Users {
			of[u] = row
		}
	}
	s.each(t, func(name string, w *testfiles.Wait, file *kcdata.LinuxFile) {
		if file.Kind != kcdata.FileSocket {
			return
		}
		near, ok := of[testfiles.User{Pid: w.Pid, Fd: int(file.Fd)}]
		th := s.threads[uint64(w.Tid)]
		i := slices.IndexFunc(th.Sockets, func(k kcdata.LinuxSocket) bool { return k.Fd == file.Fd })
		if i < 0 || !ok {
			t.Errorf("%s: no LINUX_SOCKET, or by ss none", name)
			return
		}
		sameSocket(t, name, &th.Sockets[i], near)
		if near.State == "LISTEN" {
			return
		}
		var want []testfiles.User
		for _, far := range all {
			if otherEnd(near, far) {
				want = append(want, far.Users...)
			}
		}
		flags := uint32(kcdata.EndPeer | kcdata.EndPair)
		if len(want) == 0 { // nobody has accepted it
			want, flags = s.listeners(all, near), flags|kcdata.EndAccepts
		}
		if got := s.ends(file, flags); !slices.Equal(got, sorted(want)) {
			t.Errorf("%s: ends %v, by ss %v", name, got, sorted(want))
		}
	})
}

// otherEnd says that two rows of ss are the sides of one connection.
func otherEnd(near, far testfiles.Socket) bool {
	if near.Netid != far.Netid || near.Inode == far.Inode || far.State == "LISTEN" {
		return false
	}
	if !near.Local.IsValid() {
		return far.Inode != 0 && (far.Inode == near.Peer || far.Peer == near.Inode)
	}
	return near.Local == far.Remote && near.Remote == far.Local
}

// listeners are those who listen where a connection leads. ss does not tell it of unix
// sockets, but one of ours alone has a connection in its queue.
func (s *standing) listeners(all []testfiles.Socket, near testfiles.Socket) (out []testfiles.User) {
	for _, l := range all {
		if l.State != "LISTEN" || l.Netid != near.Netid || l.In == 0 || len(l.Users) == 0 || !slices.Contains(s.pids(), l.Users[0].Pid) {
			continue
		}
		if !near.Local.IsValid() || l.Local.Port() == near.Remote.Port() {
			out = append(out, l.Users...)
		}
	}
	return out
}

// sameSocket compares a record with a row of ss. What unix sockets have sent is counted with
// the kernel's own bytes in ss.
func sameSocket(t *testing.T, name string, k *kcdata.LinuxSocket, row testfiles.Socket) {
	t.Helper()
	listens := row.State == "LISTEN"
	in, most := k.BytesIn, uint64(k.BacklogTo)
	if listens {
		in = uint64(k.Backlog)
	}
	if k.Inode != row.Inode || listens != (k.Flags&kcdata.SocketListens != 0) || in != row.In || listens && most != row.Out || !listens && (k.BytesOut > 0) != (row.Out > 0) {
		t.Errorf("%s: %+v, by ss %+v", name, *k, row)
	}
	if k.Family == unix.AF_UNIX {
		if k.PeerInode != row.Peer {
			t.Errorf("%s: peer %d, by ss %d", name, k.PeerInode, row.Peer)
		}
		return
	}
	local, remote := addrPort(k, k.Local, k.LocalPort), addrPort(k, k.Remote, k.PeerPort)
	if local != row.Local || !listens && remote != row.Remote {
		t.Errorf("%s: from %v to %v, by ss from %v to %v", name, local, remote, row.Local, row.Remote)
	}
}

func addrPort(k *kcdata.LinuxSocket, a [16]byte, port uint16) netip.AddrPort {
	addr := netip.AddrFrom16(a).Unmap()
	if k.Family == unix.AF_INET {
		addr = netip.AddrFrom4([4]byte(a[:4]))
	}
	return netip.AddrPortFrom(addr, port)
}

// lslocks has the locks of each file that is waited for, and their waiters.
func (s *standing) lslocks(t *testing.T) {
	type row struct {
		kind         uint32
		pid          int
		write, waits bool
		start, end   uint64
	}
	kinds := map[string]uint32{"FLOCK": kcdata.FileLockFlock, "POSIX": kcdata.FileLockPOSIX, "OFDLCK": kcdata.FileLockOFD, "LEASE": kcdata.FileLockLease}
	all, files := testfiles.Locks(t), 0
	s.each(t, func(name string, w *testfiles.Wait, file *kcdata.LinuxFile) {
		if file.Op != kcdata.FileOpFlock && file.Op != kcdata.FileOpPOSIX && file.Op != kcdata.FileOpOFD {
			return
		}
		files++
		want, got := map[row]int{}, map[row]int{}
		for _, l := range all {
			if l.Inode == file.Inode && l.Dev == file.Dev {
				want[row{kinds[l.Type], max(l.Pid, 0), l.Write, l.Waits, l.Start, l.End}]++
			}
		}
		for _, l := range s.snap.FileLocks {
			if l.End == math.MaxUint64 {
				l.End = 0
			}
			if l.Inode == file.Inode && l.Dev == file.Dev {
				got[row{l.Kind, int(l.Tgid), l.Flags&kcdata.FileLockWrite != 0, l.Flags&kcdata.FileLockWaits != 0, l.Start, l.End}]++
			}
		}
		if !maps.Equal(got, want) || len(want) < 2 {
			t.Errorf("%s: locks %v, by lslocks %v", name, got, want)
		}
	})
	if files != 3 {
		t.Errorf("%d files are waited for to be locked", files)
	}
}

// fdinfo has how each was opened, whose lock it is, the sets of epolls, the counts of eventfds.
func (s *standing) fdinfo(t *testing.T) {
	s.each(t, func(name string, w *testfiles.Wait, file *kcdata.LinuxFile) {
		info := testfiles.ReadFdInfo(t, w.Pid, int(file.Fd))
		if info.Inode != 0 && info.Inode != file.Inode || info.Flags&unix.O_ACCMODE != file.OFlags&unix.O_ACCMODE || file.Kind == kcdata.FileEventfd && info.Count != file.Bytes {
			t.Errorf("%s: %+v, by fdinfo %+v", name, *file, info)
		}
		switch file.Op {
		case kcdata.FileOpEpoll:
			if file.Kind == kcdata.FileEpoll {
				s.wantSet(t, name, w, info.Targets)
			}
		case kcdata.FileOpFlock, kcdata.FileOpPOSIX, kcdata.FileOpOFD:
			if got, want := s.ends(file, kcdata.EndLocks), s.lockedBy(t, file); !slices.Equal(got, want) {
				t.Errorf("%s: locked by %v, by fdinfo %v", name, got, want)
			}
		}
	})
}

// wantSet wants the files of an epoll's set.
func (s *standing) wantSet(t *testing.T, name string, w *testfiles.Wait, want []int) {
	t.Helper()
	var got []int
	for _, f := range s.threads[uint64(w.Tid)].Files {
		if f.Flags&kcdata.FilePolled != 0 {
			got = append(got, int(f.Fd))
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) || len(want) == 0 {
		t.Errorf("%s: a set of %v, by fdinfo %v", name, got, want)
	}
}

// lockedBy are the holders' descriptors that have a lock of a file, and no lease.
func (s *standing) lockedBy(t *testing.T, file *kcdata.LinuxFile) (out []testfiles.User) {
	t.Helper()
	for _, p := range s.Processes() {
		for fd := range p.Files() {
			info := testfiles.ReadFdInfo(t, p.Pid, fd)
			if info.Inode == file.Inode && slices.ContainsFunc(info.Locks, func(l string) bool { return l[:5] != "LEASE" }) {
				out = append(out, testfiles.User{Pid: p.Pid, Fd: fd})
			}
		}
	}
	return sorted(out)
}
