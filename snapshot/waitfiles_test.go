//go:build linux

package snapshot

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"stackshot/internal/bpf/bpftest"
	"stackshot/internal/testneed"
	"stackshot/kcdata"
)

func itoa(n int) string { return strconv.Itoa(n) }

// Every call with a descriptor, and every kind of file: each field is what the kernel says of
// the descriptor otherwise. Both engines record the same.
func TestFilesInTheWindow(t *testing.T) {
	testneed.Live(t)
	requireBPF(t)
	l := &fileLab{t: t, dir: t.TempDir()}
	defer l.end()
	l.pipes()
	l.unixSockets()
	l.inetSockets()
	l.terminals()
	l.locks()
	l.anonymousInodes()
	l.list = slices.DeleteFunc(l.list, func(w *fileWait) bool { return !l.sleep(w) })
	for _, w := range l.list {
		if w.name == "closed" {
			l.ok(unix.Close(w.want[0].fd))
		}
	}
	var first map[uint64]*kcdata.Thread
	for _, engineName := range userEngines() {
		got := windowOf(t, engineName, Options{}, bpftest.Knobs{}, nil)
		for _, w := range l.list {
			th := got[uint64(w.tid)]
			if th == nil {
				t.Fatalf("%s: no thread %d", engineName, w.tid)
			}
			checkFiles(t, engineName+": "+w.name, w, th)
			if first != nil && (!slices.Equal(th.Files, first[uint64(w.tid)].Files) || !slices.Equal(th.Sockets, first[uint64(w.tid)].Sockets)) {
				t.Errorf("%s: %s:\n%+v %+v, want as of the other engine\n%+v %+v", engineName, w.name, th.Files, th.Sockets, first[uint64(w.tid)].Files, first[uint64(w.tid)].Sockets)
			}
		}
		first = got
	}
}

func checkFiles(t *testing.T, name string, w *fileWait, th *kcdata.Thread) {
	t.Helper()
	for i := range th.Files { // the window does not know these
		th.Files[i].Flags &^= foundAfterwards
	}
	files := max(w.files, uint32(len(w.want)))
	if th.Wait == nil || th.Wait.Files != files || (th.Wait.Flags&kcdata.WaitFewFiles != 0) != (files > 16) {
		t.Errorf("%s: record %+v, want %d files", name, th.Wait, files)
	}
	if len(th.Files) != len(w.want) {
		t.Errorf("%s: %+v, want %+v", name, th.Files, w.want)
		return
	}
	sockets := th.Sockets
	for _, f := range th.Files {
		i := slices.IndexFunc(w.want, func(x wantFile) bool { return int32(x.fd) == f.Fd })
		if i < 0 {
			t.Errorf("%s: %+v", name, f)
			continue
		}
		checkFile(t, name, w.want[i], f)
		if f.Kind == kcdata.FileSocket {
			if len(sockets) == 0 {
				t.Errorf("%s: no record of a socket", name)
				continue
			}
			checkSocket(t, name, w.want[i], f, sockets[0])
			sockets = sockets[1:]
		}
	}
	if len(sockets) > 0 {
		t.Errorf("%s: sockets %+v", name, sockets)
	}
}

// checkFile holds a record against the descriptor.
func checkFile(t *testing.T, name string, w wantFile, f kcdata.LinuxFile) {
	t.Helper()
	want := kcdata.LinuxFile{Flags: w.flags, Op: w.op, Kind: w.kind, Fd: int32(w.fd), Events: w.events, Bytes: w.bytes,
		LockHow: w.how, LockStart: w.start, LockLen: w.length,
		Object: f.Object, Peer: f.Peer, File: f.File, Magic: f.Magic, NetNS: f.NetNS, Readers: f.Readers, Writers: f.Writers, Room: f.Room}
	if w.flags&kcdata.FileClosed == 0 {
		var st unix.Stat_t
		if err := unix.Fstat(w.fd, &st); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		flags, err := unix.FcntlInt(uintptr(w.fd), unix.F_GETFL, 0)
		if err != nil {
			t.Fatal(err)
		}
		dev := func(d uint64) uint64 { return uint64(unix.Major(d))<<32 | uint64(unix.Minor(d)) }
		want.Inode, want.Dev, want.Rdev, want.Mode, want.OFlags = st.Ino, dev(uint64(st.Dev)), dev(uint64(st.Rdev)), st.Mode, uint32(flags)
		if w.kind == kcdata.FilePidfd { // fstat says less than the inode
			want.Mode = f.Mode
			want.Name = f.Name
		} else if s, ok := strings.CutPrefix(fdLink(w.fd), "anon_inode:"); ok {
			copy(want.Name[:], s)
		}
		if f.File == 0 || f.Object == 0 || f.Magic == 0 || (f.NetNS != 0) != (w.kind == kcdata.FileSocket) {
			t.Errorf("%s: %+v", name, f)
		}
	}
	if w.kind == kcdata.FileSocket {
		want.Bytes = f.Bytes
	}
	if f != want {
		t.Errorf("%s:\n%+v, want\n%+v", name, f, want)
	}
	if pipe := w.kind == kcdata.FilePipe || w.kind == kcdata.FileFIFO; pipe != (f.Room != 0) || pipe && f.Readers+f.Writers == 0 {
		t.Errorf("%s: room %d, %d readers, %d writers", name, f.Room, f.Readers, f.Writers)
	}
	if known := f.Flags&kcdata.FilePeerKnown != 0; !known && f.Peer != 0 {
		t.Errorf("%s: %+v", name, f)
	}
}

// checkSocket holds a record against what the system calls say.
func checkSocket(t *testing.T, name string, w wantFile, f kcdata.LinuxFile, s kcdata.LinuxSocket) {
	t.Helper()
	option := func(o int) uint16 {
		v, err := unix.GetsockoptInt(w.fd, unix.SOL_SOCKET, o)
		if err != nil {
			t.Fatal(err)
		}
		return uint16(v)
	}
	want := kcdata.LinuxSocket{Flags: w.socket.Flags, Fd: int32(w.fd), Family: option(unix.SO_DOMAIN), Kind: option(unix.SO_TYPE), Protocol: option(unix.SO_PROTOCOL),
		State: s.State, NetNS: f.NetNS, Inode: f.Inode, PeerInode: s.PeerInode, PeerTgid: s.PeerTgid, BacklogTo: w.socket.BacklogTo, Backlog: w.socket.Backlog}
	if sa, err := unix.Getsockname(w.fd); err == nil {
		want.LocalPort, want.Local = address(sa)
	}
	if sa, err := unix.Getpeername(w.fd); err == nil {
		want.PeerPort, want.Remote = address(sa)
	}
	if w.socket.Flags&kcdata.SocketListens == 0 {
		in, err := unix.IoctlGetInt(w.fd, unix.SIOCINQ)
		if err != nil {
			t.Fatal(err)
		}
		out, err := unix.IoctlGetInt(w.fd, unix.SIOCOUTQ)
		if err != nil {
			t.Fatal(err)
		}
		want.BytesIn, want.BytesOut = uint64(in), uint64(out)
		if f.Bytes != want.BytesIn {
			t.Errorf("%s: %d bytes, want %d", name, f.Bytes, want.BytesIn)
		}
	}
	if w.socket.Flags&kcdata.SocketPeerCred != 0 {
		cred, err := unix.GetsockoptUcred(w.fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
		if err != nil {
			t.Fatal(err)
		}
		want.PeerTgid = uint32(cred.Pid)
	}
	if s != want {
		t.Errorf("%s:\n%+v, want\n%+v", name, s, want)
	}
	if connected := s.Flags&kcdata.SocketConnected != 0 && s.Family == unix.AF_UNIX; connected != (s.PeerInode != 0) || connected != (f.Peer != 0) {
		t.Errorf("%s: peer %#x, inode %d", name, f.Peer, s.PeerInode)
	}
}

func address(sa unix.Sockaddr) (port uint16, addr [16]byte) {
	switch a := sa.(type) {
	case *unix.SockaddrInet4:
		copy(addr[:], a.Addr[:])
		return uint16(a.Port), addr
	case *unix.SockaddrInet6:
		return uint16(a.Port), a.Addr
	}
	return 0, addr
}

// The sets of select, and one whose memory is gone.
func TestSetsInTheWindow(t *testing.T) {
	testneed.Live(t)
	requireBPF(t)
	l := &fileLab{t: t, dir: t.TempDir()}
	defer l.end()
	l.sets()
	for _, w := range l.list {
		l.sleep(w)
	}
	selected, absent := l.list[0], l.list[1]
	if err := unix.Madvise(l.gone, unix.MADV_DONTNEED); err != nil {
		t.Fatal(err)
	}
	for _, engineName := range userEngines() {
		got := windowOf(t, engineName, Options{}, bpftest.Knobs{}, nil)
		checkFiles(t, engineName+": select", selected, got[uint64(selected.tid)])
		th := got[uint64(absent.tid)]
		if th == nil || len(th.Files) != 1 || th.Files[0].Flags&kcdata.FileNoSet == 0 || th.Files[0].Fd != -1 {
			t.Errorf("%s: absent set: %+v", engineName, th)
		}
	}
}

// One thread's sets cannot take the time of many: of select the first 2,048 descriptors are looked
// at and the rest is said not to be, of a pipe in a set the first 16 buffers.
func TestLargeSetsInTheWindow(t *testing.T) {
	testneed.Live(t)
	requireBPF(t)
	l := &fileLab{t: t, dir: t.TempDir()}
	defer l.end()
	const far = 2500
	r, w := l.pipe()
	l.fd(unix.FcntlInt(uintptr(r), unix.F_DUPFD_CLOEXEC, far))
	mem, at := l.kept(4096)
	for _, fd := range []int{r, far} {
		mem[fd/8] |= 1 << (fd % 8)
	}
	one := wantFile{fd: r, op: kcdata.FileOpPoll, kind: kcdata.FilePipe, flags: toRead | kcdata.FilePolled | kcdata.FileEmpty, events: 1}
	selected := l.add("select", write(w), nil, unix.SYS_PSELECT6, far+1, at, 0, 0, 0, 0)
	_, full := l.pipe()
	if n, err := unix.FcntlInt(uintptr(full), unix.F_SETPIPE_SZ, 1<<20); err != nil || n != 1<<20 {
		t.Fatal(n, err)
	}
	fillUp(full)
	l.add("large pipe", write(w), []wantFile{one, {fd: full, op: kcdata.FileOpPoll, kind: kcdata.FilePipe,
		flags: toWrite | kcdata.FilePolled | kcdata.FileFull, events: unix.POLLOUT, bytes: 16 * uint64(unix.Getpagesize())}}, unix.SYS_PPOLL,
		l.pollfds(unix.PollFd{Fd: int32(r), Events: unix.POLLIN}, unix.PollFd{Fd: int32(full), Events: unix.POLLOUT}), 2, 0, 0, 8)
	for _, w := range l.list {
		l.sleep(w)
	}
	for _, engineName := range userEngines() {
		got := windowOf(t, engineName, Options{}, bpftest.Knobs{}, nil)
		checkFiles(t, engineName+": large pipe", l.list[1], got[uint64(l.list[1].tid)])
		th := got[uint64(selected.tid)]
		if th == nil || len(th.Files) != 2 {
			t.Errorf("%s: large set: %+v", engineName, th)
			continue
		}
		checkFile(t, engineName+": large set", one, th.Files[0])
		if th.Files[1].Flags&kcdata.FileNoSet == 0 || th.Files[1].Fd != -1 {
			t.Errorf("%s: rest of the set: %+v", engineName, th.Files[1])
		}
	}
}

// A thread at one socket, recorded by the worker that had one at three before, has padding behind
// its record: it holds nothing of the other thread.
func TestSocketsLeaveNothingBehind(t *testing.T) {
	testneed.Live(t)
	requireBPF(t)
	l := &fileLab{t: t, dir: t.TempDir()}
	defer l.end()
	_, buf := l.kept(4096)
	for range 4 {
		a, b := l.pair(unix.AF_UNIX, unix.SOCK_STREAM)
		c, _ := l.pair(unix.AF_UNIX, unix.SOCK_STREAM)
		set := l.pollfds(unix.PollFd{Fd: int32(a), Events: unix.POLLIN}, unix.PollFd{Fd: int32(c), Events: unix.POLLIN}, unix.PollFd{Fd: int32(a), Events: unix.POLLIN})
		l.add("three", write(b), nil, unix.SYS_PPOLL, set, 3, 0, 0, 8)
		a, b = l.pair(unix.AF_UNIX, unix.SOCK_STREAM)
		l.add("one", write(b), nil, unix.SYS_READ, uintptr(a), buf, 100)
	}
	for _, w := range l.list {
		l.sleep(w)
	}
	for _, engineName := range userEngines() {
		_, snap, _ := take(t, Options{Engine: engineName}, Request{Pids: []int{os.Getpid()}}) // parse looks at the padding
		for _, w := range l.list {
			if th := threadsByID(snap)[uint64(w.tid)]; th == nil || len(th.Sockets)%2 == 0 {
				t.Errorf("%s: %s: %+v", engineName, w.name, th)
			}
		}
	}
}

// foundAfterwards are the bits of LinuxFile.Flags that what is read after the release sets.
const foundAfterwards = kcdata.FileStill | kcdata.FileMoved | kcdata.FileCatches
