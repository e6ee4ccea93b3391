package bpf

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"stackshot/internal/testneed"
	"stackshot/kcdata"
)

// pair is a wait and who is to be found: theirs goes to another process, ours stays.
type pair struct {
	name         string
	ours, theirs *os.File
	kind         uint32
	flags        uint32 // of the other process's end
	bytes        uint64 // that wait there to be read
	lock         uint32 // wanted are locks, and this kind is found
}

func pipePair(t testing.TB) pair {
	var p [2]int
	err := unix.Pipe2(p[:], unix.O_CLOEXEC)
	return pair{"pipe", file(t, p[0], err), file(t, p[1], err), kcdata.FilePipe, kcdata.EndWrites | kcdata.EndSame, 5, 0}
}

func fifoPair(t testing.TB) pair {
	path := filepath.Join(t.TempDir(), "fifo")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	w, err := unix.Open(path, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	return pair{"FIFO", file(t, r, nil), file(t, w, err), kcdata.FileFIFO, kcdata.EndWrites | kcdata.EndSame, 5, 0}
}

func socketPair(t testing.TB, name string, sort int, flags uint32) pair {
	s, err := unix.Socketpair(unix.AF_UNIX, sort|unix.SOCK_CLOEXEC, 0)
	return pair{name, file(t, s[0], err), file(t, s[1], err), kcdata.FileSocket, kcdata.EndReads | kcdata.EndWrites | flags, 5, 0}
}

// sender is a datagram socket that is connected to ours, which knows nothing of it.
func sender(t testing.TB) pair {
	path := filepath.Join(t.TempDir(), "s")
	ours, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		err = unix.Bind(ours, &unix.SockaddrUnix{Name: path})
	}
	o := file(t, ours, err)
	theirs, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		err = unix.Connect(theirs, &unix.SockaddrUnix{Name: path})
	}
	return pair{"datagrams from", o, file(t, theirs, err), kcdata.FileSocket, kcdata.EndReads | kcdata.EndWrites | kcdata.EndPeer, 0, 0}
}

// unaccepted is a connection in the queue of a listener that is in the other process.
func unaccepted(t testing.TB) pair {
	path := filepath.Join(t.TempDir(), "l")
	l, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		err = unix.Bind(l, &unix.SockaddrUnix{Name: path})
	}
	if err == nil {
		err = unix.Listen(l, 5)
	}
	lf := file(t, l, err)
	c, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		err = unix.Connect(c, &unix.SockaddrUnix{Name: path})
	}
	return pair{"not accepted", file(t, c, err), lf, kcdata.FileSocket, kcdata.EndReads | kcdata.EndWrites | kcdata.EndListens | kcdata.EndAccepts, 0, 0}
}

// tcp connects over loopback. If accept is false the other process has the listener.
func tcp(t testing.TB, listen, dial string, accept bool) pair {
	l, err := net.Listen("tcp", listen)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	c, err := net.Dial("tcp", net.JoinHostPort(dial, port))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ours, err := c.(*net.TCPConn).File()
	if err != nil {
		t.Fatal(err)
	}
	out := pair{fmt.Sprintf("TCP %s, %v", dial, accept), ours, nil, kcdata.FileSocket, kcdata.EndReads | kcdata.EndWrites, 0, 0}
	if accept {
		a, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		if out.theirs, err = a.(*net.TCPConn).File(); err != nil {
			t.Fatal(err)
		}
		out.flags |= kcdata.EndPair
		out.bytes = 5
	} else {
		if out.theirs, err = l.(*net.TCPListener).File(); err != nil {
			t.Fatal(err)
		}
		out.flags |= kcdata.EndListens | kcdata.EndAccepts
	}
	t.Cleanup(func() { ours.Close(); out.theirs.Close() })
	return out
}

// udp: the client is connected; the server is if it says so.
func udp(t testing.TB, connected bool) pair {
	s, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c, err := net.DialUDP("udp4", nil, s.LocalAddr().(*net.UDPAddr))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ours, err := c.File()
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := s.File()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ours.Close(); theirs.Close() })
	if connected {
		at := &unix.SockaddrInet4{Port: c.LocalAddr().(*net.UDPAddr).Port, Addr: [4]byte{127, 0, 0, 1}}
		if err := unix.Connect(int(theirs.Fd()), at); err != nil {
			t.Fatal(err)
		}
	}
	return pair{fmt.Sprintf("UDP %v", connected), ours, theirs, kcdata.FileSocket, kcdata.EndReads | kcdata.EndWrites | kcdata.EndPair, 5, 0}
}

func pty(t testing.TB) pair {
	m, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Skip("no /dev/ptmx: ", err)
	}
	master := file(t, m, nil)
	if err := unix.IoctlSetPointerInt(m, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	s, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(m), unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)
	if errno != 0 {
		t.Fatal(errno)
	}
	return pair{"pty", file(t, int(s), nil), master, kcdata.FilePTMaster, kcdata.EndReads | kcdata.EndWrites | kcdata.EndPeer, 0, 0}
}

// same is a file that has only one side: the other process has it, too.
func same(t testing.TB, name string, kind, flags uint32, fd int, err error) pair {
	f := file(t, fd, err)
	return pair{name, f, f, kind, flags | kcdata.EndSame, 0, 0}
}

func userfaultfd(t testing.TB) (int, error) {
	fd, _, errno := unix.Syscall(unix.SYS_USERFAULTFD, unix.O_CLOEXEC|unix.O_NONBLOCK, 0, 0)
	if errno != 0 {
		t.Skip("userfaultfd: ", errno)
	}
	return int(fd), nil
}

// locked is a file on which the other process has a lock that came with the descriptor.
func locked(t testing.TB, name string, kind uint32, take func(fd int) error) pair {
	f, err := os.Create(filepath.Join(t.TempDir(), "locked"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	theirs, err := os.OpenFile(f.Name(), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { theirs.Close() })
	if err := take(int(theirs.Fd())); err != nil {
		t.Fatal(err)
	}
	return pair{name, f, theirs, kcdata.FileRegular, kcdata.EndReads | kcdata.EndWrites | kcdata.EndLocks, 0, kind}
}

func pairsOfAllKinds(t testing.TB) []pair {
	loopbackUp(t)
	both := uint32(kcdata.EndReads | kcdata.EndWrites)
	eventfd, e1 := unix.Eventfd(0, unix.EFD_CLOEXEC)
	timerfd, e2 := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC)
	inotify, e3 := unix.InotifyInit1(unix.IN_CLOEXEC)
	epoll, e4 := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	return []pair{
		pipePair(t), fifoPair(t), sender(t), unaccepted(t), pty(t), udp(t, true), udp(t, false),
		socketPair(t, "stream", unix.SOCK_STREAM, kcdata.EndPeer), socketPair(t, "datagram", unix.SOCK_DGRAM, kcdata.EndPeer),
		socketPair(t, "packets", unix.SOCK_SEQPACKET, kcdata.EndPeer),
		tcp(t, "127.0.0.1:0", "127.0.0.1", true), tcp(t, "127.0.0.1:0", "127.0.0.1", false), tcp(t, "[::1]:0", "::1", true),
		tcp(t, ":0", "127.0.0.1", true), tcp(t, ":0", "127.0.0.1", false),
		same(t, "eventfd", kcdata.FileEventfd, both, eventfd, e1), same(t, "timerfd", kcdata.FileTimerfd, both, timerfd, e2),
		same(t, "inotify", kcdata.FileInotify, kcdata.EndReads, inotify, e3), same(t, "epoll", kcdata.FileEpoll, both, epoll, e4),
		locked(t, "flock", kcdata.FileLockFlock, func(fd int) error { return unix.Flock(fd, unix.LOCK_EX) }),
		locked(t, "OFD", kcdata.FileLockOFD, func(fd int) error {
			return unix.FcntlFlock(uintptr(fd), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK, Len: 10})
		}),
	}
}

// fill writes five bytes that the other process has to read.
func (p pair) fill(t testing.TB) {
	t.Helper()
	at := p.ours
	if p.kind == kcdata.FilePipe || p.kind == kcdata.FileFIFO {
		at = p.theirs
	}
	if p.bytes != 0 {
		if n, err := unix.Write(int(at.Fd()), []byte("hello")[:p.bytes]); err != nil || n != int(p.bytes) {
			t.Fatalf("%s: %d, %v", p.name, n, err)
		}
	}
}

// Of every kind of file the process that has the other end is found, by one pass, with the
// descriptor, what it may do with it, and what lies unread there.
func TestEndsOfAllKinds(t *testing.T) {
	testneed.Live(t)
	pass, list := newPass(t), newLister(t)
	pairs := pairsOfAllKinds(t)
	var files []*os.File
	for _, p := range pairs {
		p.fill(t)
		files = append(files, p.theirs)
	}
	them := hold(t, "hold", files...)
	ours := list.of(t, os.Getpid())
	var wanted []WantedEnd
	for _, p := range pairs {
		w := wants(ours[int32(p.ours.Fd())])
		w.Lock = p.lock != 0
		wanted = append(wanted, w)
	}
	found := lookFor(t, pass, wanted)
	t.Logf("%d descriptors, %d ends, %d ns", found.Looked, len(found.Ends), found.Ns)
	for i, p := range pairs {
		fd := int32(3 + i)
		e, ok := theEnd(found, wanted[i].Object, them.pid, fd)
		if !ok {
			t.Errorf("%s: the other process's descriptor %d was not found", p.name, fd)
			continue
		}
		if e.Kind != p.kind || e.Flags != p.flags || e.BytesIn != p.bytes || e.LockKind != p.lock || e.Start == 0 || e.Refs != 2 {
			t.Errorf("%s: %+v, want kind %d, flags %#x, %d bytes, lock %d, 2 references: the other process's and ours", p.name, e, p.kind, p.flags, p.bytes, p.lock)
		}
	}
	for _, e := range found.Ends {
		agrees(t, e)
	}
}

func theEnd(f *FoundEnds, of uint64, pid int, fd int32) (kcdata.LinuxEnd, bool) {
	for _, e := range f.Ends {
		if e.Of == of && int(e.Tgid) == pid && e.Fd == fd {
			return e, true
		}
	}
	return kcdata.LinuxEnd{}, false
}

// agrees: /proc says the same of a descriptor of a process that holds still.
func agrees(t testing.TB, e kcdata.LinuxEnd) {
	t.Helper()
	to, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", e.Tgid, e.Fd))
	if err != nil {
		t.Errorf("process %d, descriptor %d: %v", e.Tgid, e.Fd, err)
		return
	}
	want := map[uint32]string{
		kcdata.FilePipe: fmt.Sprintf("pipe:[%d]", e.Inode), kcdata.FileSocket: fmt.Sprintf("socket:[%d]", e.Inode),
		kcdata.FileEventfd: "[eventfd]", kcdata.FileTimerfd: "[timerfd]", kcdata.FileInotify: "inotify", kcdata.FileEpoll: "[eventpoll]",
		kcdata.FileUserfaultfd: "[userfaultfd]", kcdata.FileFUSE: "/dev/fuse",
	}[e.Kind]
	if !strings.Contains(to, want) {
		t.Errorf("process %d, descriptor %d: %s, the pass says kind %d, inode %d", e.Tgid, e.Fd, to, e.Kind, e.Inode)
	}
}
