//go:build linux

package testfiles

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"stackshot/kcdata"
)

// maker makes the files of a fixture and hands them out.
type maker struct {
	tb   testing.TB
	f    *Fixture
	dir  string
	made []*os.File
}

// all makes every wait there is.
func (m *maker) all() {
	m.pipes()
	m.unixSockets()
	m.inetSockets()
	m.terminals()
	m.anonymous()
	m.sets()
	m.locks()
	a, b := m.pair(unix.SOCK_STREAM)
	m.f.Link.A, m.f.Link.B = m.f.A.give(a), m.f.B.give(b)
}

// file is a descriptor as the fixture's own, until the processes have it.
func (m *maker) file(fd int, err error) *os.File {
	m.tb.Helper()
	if err != nil {
		m.tb.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "")
	m.made = append(m.made, f)
	return f
}

func (m *maker) must(err error) {
	m.tb.Helper()
	if err != nil {
		m.tb.Fatal(err)
	}
}

// wait has the waiter make a call with files that it has.
func (m *maker) wait(name, how string, files ...File) {
	c := call{Name: name, How: how}
	for _, f := range files {
		c.Fds = append(c.Fds, f.Fd)
	}
	m.call(c, files...)
}

func (m *maker) call(c call, files ...File) {
	m.f.Waiter.plan.Calls = append(m.f.Waiter.plan.Calls, c)
	m.f.Waits = append(m.f.Waits, &Wait{Name: c.Name, Nr: numbers[c.How], File: files})
}

// to is a file of the waiter whose other end, far, these processes have.
func (m *maker) to(near *os.File, kind uint32, far *os.File, flags uint32, holders ...*Process) File {
	f := File{Fd: m.f.Waiter.give(near), Kind: kind}
	for _, p := range holders {
		f.Ends = append(f.Ends, End{Process: p, Fd: p.give(far), Flags: flags})
	}
	return f
}

func (m *maker) pipe() (r, w *os.File) {
	m.tb.Helper()
	var p [2]int
	m.must(unix.Pipe2(p[:], unix.O_CLOEXEC))
	return m.file(p[0], nil), m.file(p[1], nil)
}

func (m *maker) pipes() {
	const reads, writes = kcdata.EndSame | kcdata.EndReads, kcdata.EndSame | kcdata.EndWrites
	a, b := m.f.A, m.f.B
	r, w := m.pipe()
	m.wait("pipe", "read", m.to(r, kcdata.FilePipe, w, writes, a))
	r, w = m.pipe()
	m.wait("pipe-writers", "read", m.to(r, kcdata.FilePipe, w, writes, a, b))
	r, w = m.pipe()
	m.must(filled(int(w.Fd())))
	m.wait("pipe-full", "write", m.to(w, kcdata.FilePipe, r, reads, a))
	r, w = m.pipe()
	m.wait("pipe-own", "read", m.to(r, kcdata.FilePipe, w, writes, m.f.Waiter))

	path := filepath.Join(m.dir, "fifo")
	m.must(unix.Mkfifo(path, 0o600))
	r = m.file(unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0))
	w = m.file(unix.Open(path, unix.O_WRONLY|unix.O_CLOEXEC, 0))
	m.must(unix.SetNonblock(int(r.Fd()), false))
	m.wait("fifo", "read", m.to(r, kcdata.FileFIFO, w, writes, b))

	path = filepath.Join(m.dir, "alone")
	m.must(unix.Mkfifo(path, 0o600))
	m.call(call{Name: "fifo-open", How: "open", Path: path})
}

func (m *maker) terminals() {
	for _, slaveWaits := range []bool{true, false} {
		master := m.file(unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0))
		m.must(unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0))
		fd, _, e := unix.Syscall(unix.SYS_IOCTL, master.Fd(), unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)
		if e != 0 {
			m.tb.Fatal(e)
		}
		slave := m.file(int(fd), nil)
		if slaveWaits {
			m.wait("pty-slave", "read", m.to(slave, kcdata.FileTerminal, master, kcdata.EndPeer, m.f.A))
		} else {
			m.wait("pty-master", "read", m.to(master, kcdata.FilePTMaster, slave, kcdata.EndPeer, m.f.B))
		}
	}
}

// anonymous has the files whose other end is the same file, opened by another.
func (m *maker) anonymous() {
	same := func(name, how string, kind uint32, fd int, err error) {
		f := m.file(fd, err)
		m.wait(name, how, m.to(f, kind, f, kcdata.EndSame, m.f.A))
	}
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	same("eventfd", "read", kcdata.FileEventfd, fd, err)
	fd, err = unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC)
	same("timerfd", "read", kcdata.FileTimerfd, fd, err)
	fd, err = unix.InotifyInit1(unix.IN_CLOEXEC)
	same("inotify", "read", kcdata.FileInotify, fd, err)

	fd, err = unix.Signalfd(-1, &unix.Sigset_t{}, unix.SFD_CLOEXEC)
	m.wait("signalfd", "read", File{Fd: m.f.Waiter.give(m.file(fd, err)), Kind: kcdata.FileSignalfd})
	fd, err = unix.PidfdOpen(os.Getpid(), 0)
	m.wait("pidfd", "poll", File{Fd: m.f.Waiter.give(m.file(fd, err)), Kind: kcdata.FilePidfd})
}

// sets has the calls that wait at several files.
func (m *maker) sets() {
	several := func() []File {
		r, w := m.pipe()
		near, far := m.pair(unix.SOCK_STREAM)
		event := m.file(unix.Eventfd(0, unix.EFD_CLOEXEC))
		return []File{m.to(r, kcdata.FilePipe, w, kcdata.EndSame|kcdata.EndWrites, m.f.A),
			m.to(near, kcdata.FileSocket, far, kcdata.EndPeer, m.f.B), m.to(event, kcdata.FileEventfd, event, kcdata.EndSame, m.f.A)}
	}
	m.wait("poll", "poll", several()...)
	m.wait("select", "select", several()...)
	files := several()
	set := m.file(unix.EpollCreate1(unix.EPOLL_CLOEXEC))
	m.wait("epoll", "epoll", append([]File{{Fd: m.f.Waiter.give(set), Kind: kcdata.FileEpoll}}, files...)...)
}
