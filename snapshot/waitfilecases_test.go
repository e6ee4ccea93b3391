//go:build linux

package snapshot

import (
	"encoding/binary"
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"stackshot/kcdata"
)

const (
	toRead, toWrite = kcdata.FileToRead, kcdata.FileToWrite
	opRead, opWrite = kcdata.FileOpRead, kcdata.FileOpWrite
)

func one(w wantFile) []wantFile { return []wantFile{w} }

func (l *fileLab) pipes() {
	_, buf := l.kept(1 << 16)
	r, w := l.pipe()
	l.add("pipe read", write(w), one(wantFile{fd: r, op: opRead, kind: kcdata.FilePipe, flags: toRead | kcdata.FileEmpty}), unix.SYS_READ, uintptr(r), buf, 100)
	r, w = l.pipe()
	fillUp(w)
	l.add("pipe write", drain(r), one(wantFile{fd: w, op: opWrite, kind: kcdata.FilePipe, flags: toWrite | kcdata.FileFull, bytes: 65536}), unix.SYS_WRITE, uintptr(w), buf, 5000)
	l.ok(unix.Mkfifo(l.path("fifo"), 0o600))
	f := l.fd(unix.Open(l.path("fifo"), unix.O_RDWR|unix.O_CLOEXEC, 0))
	l.add("FIFO", write(f), one(wantFile{fd: f, op: opRead, kind: kcdata.FileFIFO, flags: toRead | kcdata.FileEmpty}), unix.SYS_READ, uintptr(f), buf, 100)
	r, w = l.pipe()
	_, out := l.pipe()
	l.add("splice", write(w), []wantFile{{fd: r, op: opRead, kind: kcdata.FilePipe, flags: toRead | kcdata.FileEmpty},
		{fd: out, op: opWrite, kind: kcdata.FilePipe, flags: toWrite | kcdata.FileEmpty}}, unix.SYS_SPLICE, uintptr(r), 0, uintptr(out), 0, 4096, 0)
	r, w = l.pipe()
	_, out = l.pipe()
	l.add("tee", write(w), []wantFile{{fd: r, op: opRead, kind: kcdata.FilePipe, flags: toRead | kcdata.FileEmpty},
		{fd: out, op: opWrite, kind: kcdata.FilePipe, flags: toWrite | kcdata.FileEmpty}}, unix.SYS_TEE, uintptr(r), uintptr(out), 4096, 0)
	l.ok(os.WriteFile(l.path("data"), make([]byte, 1<<16), 0o600))
	from := l.fd(unix.Open(l.path("data"), unix.O_RDONLY|unix.O_CLOEXEC, 0))
	r, w = l.pipe()
	fillUp(w)
	l.add("sendfile", drain(r), []wantFile{{fd: w, op: opWrite, kind: kcdata.FilePipe, flags: toWrite | kcdata.FileFull, bytes: 65536},
		{fd: from, op: opRead, kind: kcdata.FileRegular, flags: toRead}}, unix.SYS_SENDFILE, uintptr(w), uintptr(from), 0, 8192)
	r, w = l.pipe()
	closed, err := unix.FcntlInt(uintptr(r), unix.F_DUPFD_CLOEXEC, 900)
	l.ok(err)
	l.add("closed", write(w), one(wantFile{fd: closed, op: opRead, flags: toRead | kcdata.FileClosed}), unix.SYS_READ, uintptr(closed), buf, 100)
}

func (l *fileLab) unixSockets() {
	_, buf := l.kept(1 << 16)
	ends := func(fd int, flags uint32) wantFile {
		return wantFile{fd: fd, op: opRead, kind: kcdata.FileSocket, flags: toRead | kcdata.FilePeerKnown, socket: kcdata.LinuxSocket{Flags: flags}}
	}
	const connected, cred = kcdata.SocketConnected, kcdata.SocketPeerCred
	for name, typ := range map[string]int{"unix stream": unix.SOCK_STREAM, "unix datagram": unix.SOCK_DGRAM, "unix seqpacket": unix.SOCK_SEQPACKET} {
		a, b := l.pair(unix.AF_UNIX, typ)
		l.add(name, write(b), one(ends(a, connected|cred)), unix.SYS_RECVFROM, uintptr(a), buf, 100, 0, 0, 0)
	}
	a := l.socket(unix.AF_UNIX, unix.SOCK_DGRAM)
	l.ok(unix.Bind(a, &unix.SockaddrUnix{Name: l.path("bound")}))
	l.ok(unix.SetsockoptTimeval(a, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 3600}))
	want := ends(a, kcdata.SocketNamed)
	want.flags |= kcdata.FileTimed
	l.add("unix datagram, bound", shut(a), one(want), unix.SYS_READ, uintptr(a), buf, 100)
	a, b := l.pair(unix.AF_UNIX, unix.SOCK_STREAM)
	fillUp(a)
	want = ends(a, connected|cred)
	want.op, want.flags = opWrite, toWrite|kcdata.FilePeerKnown
	l.add("unix stream, full", drain(b), one(want), unix.SYS_SENDTO, uintptr(a), buf, 60000, 0, 0, 0)
	listener := l.socket(unix.AF_UNIX, unix.SOCK_STREAM)
	l.ok(unix.Bind(listener, &unix.SockaddrUnix{Name: l.path("listens")}))
	l.ok(unix.Listen(listener, 7))
	want = ends(listener, kcdata.SocketListens|kcdata.SocketNamed|cred)
	want.op, want.socket.BacklogTo = kcdata.FileOpAccept, 7
	l.add("unix accept", shut(listener), one(want), unix.SYS_ACCEPT4, uintptr(listener), 0, 0, 0)
	full := l.socket(unix.AF_UNIX, unix.SOCK_STREAM)
	l.ok(unix.Bind(full, &unix.SockaddrUnix{Name: l.path("full")}))
	l.ok(unix.Listen(full, 0))
	first, second := l.socket(unix.AF_UNIX, unix.SOCK_STREAM), l.socket(unix.AF_UNIX, unix.SOCK_STREAM)
	l.ok(unix.Connect(first, &unix.SockaddrUnix{Name: l.path("full")}))
	mem, at := l.kept(4096)
	binary.NativeEndian.PutUint16(mem, unix.AF_UNIX)
	n := copy(mem[2:100], l.path("full"))
	want = ends(second, 0)
	want.op, want.flags = kcdata.FileOpConnect, kcdata.FilePeerKnown
	l.add("unix connect", func() {
		if fd, _, err := unix.Accept(full); err == nil {
			unix.Close(fd)
		}
	}, one(want), unix.SYS_CONNECT, uintptr(second), at, uintptr(n+3))
	polled, other := l.pair(unix.AF_UNIX, unix.SOCK_STREAM)
	for range 3 {
		write(other)()
	}
	unix.Read(polled, make([]byte, 3))
	l.add("unix poll", shut(other), one(wantFile{fd: polled, op: kcdata.FileOpPoll, kind: kcdata.FileSocket, events: unix.POLLPRI,
		flags: toRead | kcdata.FilePolled | kcdata.FilePeerKnown, socket: kcdata.LinuxSocket{Flags: connected | cred}}),
		unix.SYS_PPOLL, l.pollfds(unix.PollFd{Fd: int32(polled), Events: unix.POLLPRI}), 1, 0, 0, 8)
}

// pollfds puts entries where the kernel sees them.
func (l *fileLab) pollfds(list ...unix.PollFd) uintptr {
	mem, at := l.kept(4096)
	copy(unsafe.Slice((*unix.PollFd)(unsafe.Pointer(&mem[0])), len(list)), list)
	return at
}

func (l *fileLab) inetSockets() {
	_, buf := l.kept(1 << 20)
	l.loopbackUp()
	in := func(fd int, flags uint32) wantFile {
		return wantFile{fd: fd, op: opRead, kind: kcdata.FileSocket, flags: toRead, socket: kcdata.LinuxSocket{Flags: flags}}
	}
	s, c, listener := l.loopback(unix.AF_INET, unix.AF_INET, inet4, inet4)
	l.add("TCP", write(s), one(in(c, kcdata.SocketConnected)), unix.SYS_READ, uintptr(c), buf, 100)
	want := in(listener, kcdata.SocketListens)
	want.op, want.socket.BacklogTo = kcdata.FileOpAccept, 5
	l.add("TCP accept", shut(listener), one(want), unix.SYS_ACCEPT4, uintptr(listener), 0, 0, 0)
	s, c, _ = l.loopback(unix.AF_INET, unix.AF_INET, inet4, inet4)
	fillUp(s)
	want = in(s, kcdata.SocketConnected)
	want.op, want.flags = opWrite, toWrite
	l.add("TCP full", drain(c), one(want), unix.SYS_WRITE, uintptr(s), buf, 1<<20)
	s, c, _ = l.loopback(unix.AF_INET, unix.AF_INET, inet4, inet4)
	l.ok(unix.Shutdown(s, unix.SHUT_RD))
	l.add("half-closed", write(c), one(in(c, kcdata.SocketConnected|kcdata.SocketShutOut)), unix.SYS_READ, uintptr(c), buf, 100)
	l.ok(unix.Shutdown(c, unix.SHUT_WR))
	l.list[len(l.list)-1].wake = write(s)
	s, c, _ = l.loopback(unix.AF_INET6, unix.AF_INET, any6, inet4)
	l.add("TCP, mapped", write(c), one(in(s, kcdata.SocketConnected|kcdata.SocketV4)), unix.SYS_READ, uintptr(s), buf, 100)
	u := l.socket(unix.AF_INET, unix.SOCK_DGRAM)
	l.ok(unix.Bind(u, inet4(0)))
	l.add("UDP", shut(u), one(in(u, 0)), unix.SYS_RECVFROM, uintptr(u), buf, 100, 0, 0, 0)
	if probe, err := unix.Socket(unix.AF_INET6, unix.SOCK_STREAM, 0); err == nil {
		err = unix.Bind(probe, inet6(0))
		unix.Close(probe)
		if err == nil {
			s, c, _ = l.loopback(unix.AF_INET6, unix.AF_INET6, inet6, inet6)
			l.add("TCP of IPv6", write(s), one(in(c, kcdata.SocketConnected)), unix.SYS_READ, uintptr(c), buf, 100)
		}
	}
}

func (l *fileLab) anonymousInodes() {
	mem, buf := l.kept(1 << 16)
	e := l.fd(unix.Eventfd(0, unix.EFD_CLOEXEC))
	l.add("eventfd", write(e), one(wantFile{fd: e, op: opRead, kind: kcdata.FileEventfd, flags: toRead}), unix.SYS_READ, uintptr(e), buf, 8)
	e2 := l.fd(unix.Eventfd(0, unix.EFD_CLOEXEC))
	binary.NativeEndian.PutUint64(mem[64:], ^uint64(1))
	if _, err := unix.Write(e2, mem[64:72]); err != nil {
		l.t.Fatal(err)
	}
	l.add("eventfd, full", func() { unix.Read(e2, make([]byte, 8)) }, one(wantFile{fd: e2, op: opWrite, kind: kcdata.FileEventfd, flags: toWrite, bytes: ^uint64(1)}),
		unix.SYS_WRITE, uintptr(e2), buf+64, 8)
	timer := l.fd(unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC))
	l.ok(unix.TimerfdSettime(timer, 0, &unix.ItimerSpec{Value: unix.Timespec{Sec: 3600}}, nil))
	l.add("timerfd", func() { unix.TimerfdSettime(timer, 0, &unix.ItimerSpec{Value: unix.Timespec{Nsec: 1}}, nil) },
		one(wantFile{fd: timer, op: opRead, kind: kcdata.FileTimerfd, flags: toRead}), unix.SYS_READ, uintptr(timer), buf, 8)
	in := l.fd(unix.InotifyInit1(unix.IN_CLOEXEC))
	_, err := unix.InotifyAddWatch(in, l.dir, unix.IN_CREATE)
	l.ok(err)
	l.add("inotify", func() { os.WriteFile(l.path("new"+time.Now().Format("150405.000")), nil, 0o600) },
		one(wantFile{fd: in, op: opRead, kind: kcdata.FileInotify, flags: toRead}), unix.SYS_READ, uintptr(in), buf, 4096)
	r, w := l.pipe()
	ep := l.fd(unix.EpollCreate1(unix.EPOLL_CLOEXEC))
	sets := []wantFile{{fd: ep, op: kcdata.FileOpEpoll, kind: kcdata.FileEpoll, flags: kcdata.FileTimed}}
	for fd, kind := range map[int]uint32{e: kcdata.FileEventfd, r: kcdata.FilePipe, in: kcdata.FileInotify} {
		l.ok(unix.EpollCtl(ep, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}))
		one := wantFile{fd: fd, op: kcdata.FileOpEpoll, kind: kind, flags: toRead | kcdata.FilePolled | kcdata.FileTimed, events: unix.EPOLLIN | unix.EPOLLERR | unix.EPOLLHUP}
		if fd == r {
			one.flags |= kcdata.FileEmpty
		}
		sets = append(sets, one)
	}
	l.add("epoll", write(w), sets, unix.SYS_EPOLL_PWAIT, uintptr(ep), buf+4096, 8, 3_600_000, 0, 8)
	pid := l.fd(unix.PidfdOpen(os.Getpid(), 0))
	l.add("pidfd, poll of 40", nil, one(wantFile{fd: pid, op: kcdata.FileOpPoll, kind: kcdata.FilePidfd, flags: toRead | kcdata.FilePolled, events: unix.POLLIN}),
		unix.SYS_PPOLL, l.manyPolled(pid, w), 44, 0, 0, 8)
	many := l.list[len(l.list)-1]
	for range 15 {
		many.want = append(many.want, wantFile{fd: w, op: kcdata.FileOpPoll, kind: kcdata.FilePipe, flags: kcdata.FilePolled | kcdata.FileEmpty, events: 0})
	}
	many.files, many.wake = 40, func() { unix.Close(r) } // its writers see an error
}

// manyPolled is pid and 39 times w, with entries between that do not count.
func (l *fileLab) manyPolled(pid, w int) uintptr {
	list := []unix.PollFd{{Fd: -1}, {Fd: int32(pid), Events: unix.POLLIN}, {Fd: -1}, {Fd: -5}}
	for range 39 {
		list = append(list, unix.PollFd{Fd: int32(w)})
	}
	return l.pollfds(append(list, unix.PollFd{Fd: -1})...)
}

func (l *fileLab) terminals() {
	_, buf := l.kept(4096)
	for _, side := range []string{"master", "slave"} {
		m := l.fd(unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0))
		l.ok(unix.IoctlSetPointerInt(m, unix.TIOCSPTLCK, 0))
		n, err := unix.IoctlGetInt(m, unix.TIOCGPTN)
		l.ok(err)
		s := l.fd(unix.Open("/dev/pts/"+itoa(n), unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0))
		if side == "master" {
			l.add(side, write(s), one(wantFile{fd: m, op: opRead, kind: kcdata.FilePTMaster, flags: toRead | kcdata.FilePeerKnown}), unix.SYS_READ, uintptr(m), buf, 100)
			continue
		}
		l.add(side, func() { unix.Write(m, []byte("x\n")) },
			one(wantFile{fd: s, op: opRead, kind: kcdata.FileTerminal, flags: toRead | kcdata.FilePeerKnown}), unix.SYS_READ, uintptr(s), buf, 100)
	}
}

func (l *fileLab) locks() {
	l.ok(os.WriteFile(l.path("locked"), nil, 0o600))
	open := func() int { return l.fd(unix.Open(l.path("locked"), unix.O_RDWR|unix.O_CLOEXEC, 0)) }
	holder, waiter := open(), open()
	l.ok(unix.Flock(holder, unix.LOCK_EX))
	l.add("flock", func() { unix.Flock(holder, unix.LOCK_UN) }, one(wantFile{fd: waiter, op: kcdata.FileOpFlock, kind: kcdata.FileRegular, how: unix.LOCK_SH}),
		unix.SYS_FLOCK, uintptr(waiter), unix.LOCK_SH)
	const ofdSetlk, ofdSetlkw = 37, 38
	mem, at := l.kept(4096)
	free := func() { unix.FcntlFlock(uintptr(holder), ofdSetlk, &unix.Flock_t{Type: unix.F_UNLCK}) }
	l.ok(unix.FcntlFlock(uintptr(holder), ofdSetlk, &unix.Flock_t{Type: unix.F_WRLCK}))
	for i, cmd := range []uintptr{ofdSetlkw, unix.F_SETLKW} {
		fd, op := open(), uint32(kcdata.FileOpOFD)
		if cmd == unix.F_SETLKW {
			op = kcdata.FileOpPOSIX
		}
		*(*unix.Flock_t)(unsafe.Pointer(&mem[64*i])) = unix.Flock_t{Type: unix.F_RDLCK, Whence: 0, Start: 10 + int64(100*i), Len: 1 << 40}
		l.add("fcntl "+itoa(int(cmd)), free, one(wantFile{fd: fd, op: op, kind: kcdata.FileRegular, how: unix.F_RDLCK, start: 10 + uint64(100*i), length: 1 << 40}),
			unix.SYS_FCNTL, uintptr(fd), cmd, at+uintptr(64*i))
	}
}

// sets are those of select, and those whose memory is gone.
func (l *fileLab) sets() {
	r, w := l.pipe()
	r2, w2 := l.pipe()
	fillUp(w2)
	mem, at := l.kept(4096)
	in, out := (*unix.FdSet)(unsafe.Pointer(&mem[0])), (*unix.FdSet)(unsafe.Pointer(&mem[256]))
	in.Set(r)
	out.Set(w2)
	*(*unix.Timespec)(unsafe.Pointer(&mem[1024])) = unix.Timespec{Sec: 3600}
	l.add("select", write(w), []wantFile{
		{fd: r, op: kcdata.FileOpPoll, kind: kcdata.FilePipe, flags: toRead | kcdata.FilePolled | kcdata.FileTimed | kcdata.FileEmpty, events: 1},
		{fd: w2, op: kcdata.FileOpPoll, kind: kcdata.FilePipe, flags: toWrite | kcdata.FilePolled | kcdata.FileTimed | kcdata.FileFull, events: 4, bytes: 65536},
	}, unix.SYS_PSELECT6, uintptr(max(r, w2, r2)+1), at, at+256, 0, at+1024, 0)
	gone, goneAt := l.kept(8192)
	list := unsafe.Slice((*unix.PollFd)(unsafe.Pointer(&gone[0])), 600)
	for i := range list {
		list[i] = unix.PollFd{Fd: -1}
	}
	list[3] = unix.PollFd{Fd: int32(r), Events: unix.POLLPRI}
	l.gone = gone
	l.add("absent set", func() { unix.Close(w) }, nil, unix.SYS_PPOLL, goneAt, 600, 0, 0, 8)
}
