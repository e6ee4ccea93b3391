//go:build linux

package testfiles

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"stackshot/kcdata"
)

// pair is a connected pair of unix sockets.
func (m *maker) pair(kind int) (a, b *os.File) {
	m.tb.Helper()
	p, err := unix.Socketpair(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
	m.must(err)
	return m.file(p[0], nil), m.file(p[1], nil)
}

func (m *maker) socket(family, kind int) *os.File {
	m.tb.Helper()
	return m.file(unix.Socket(family, kind|unix.SOCK_CLOEXEC, 0))
}

// listen gives a listening socket and its address.
func (m *maker) listen(family int, at unix.Sockaddr) (*os.File, unix.Sockaddr) {
	m.tb.Helper()
	l := m.socket(family, unix.SOCK_STREAM)
	m.must(unix.Bind(int(l.Fd()), at))
	m.must(unix.Listen(int(l.Fd()), 8))
	addr, err := unix.Getsockname(int(l.Fd()))
	m.must(err)
	return l, addr
}

// connect gives a socket connected to an address.
func (m *maker) connect(family int, to unix.Sockaddr) *os.File {
	m.tb.Helper()
	c := m.socket(family, unix.SOCK_STREAM)
	m.must(unix.Connect(int(c.Fd()), to))
	return c
}

func (m *maker) accept(l *os.File) *os.File {
	m.tb.Helper()
	fd, _, err := unix.Accept4(int(l.Fd()), unix.SOCK_CLOEXEC)
	return m.file(fd, err)
}

func (m *maker) unixSockets() {
	for _, s := range []struct {
		name string
		kind int
	}{{"unix-stream", unix.SOCK_STREAM}, {"unix-seqpacket", unix.SOCK_SEQPACKET}, {"unix-dgram", unix.SOCK_DGRAM}} {
		near, far := m.pair(s.kind)
		m.wait(s.name, "recv", m.to(near, kcdata.FileSocket, far, kcdata.EndPeer, m.f.A, m.f.B))
	}
	near, far := m.pair(unix.SOCK_STREAM)
	m.must(filled(int(near.Fd())))
	m.wait("unix-full", "write", m.to(near, kcdata.FileSocket, far, kcdata.EndPeer, m.f.A))

	// Many send to one: the reader's socket has no peer, those who sent to it have it as theirs.
	path := &unix.SockaddrUnix{Name: filepath.Join(m.dir, "log")}
	log := m.socket(unix.AF_UNIX, unix.SOCK_DGRAM)
	m.must(unix.Bind(int(log.Fd()), path))
	one, two := m.socket(unix.AF_UNIX, unix.SOCK_DGRAM), m.socket(unix.AF_UNIX, unix.SOCK_DGRAM)
	m.must(unix.Connect(int(one.Fd()), path))
	m.must(unix.Connect(int(two.Fd()), path))
	f := m.to(log, kcdata.FileSocket, one, kcdata.EndPeer, m.f.A)
	f.Ends = append(f.Ends, End{Process: m.f.B, Fd: m.f.B.give(two), Flags: kcdata.EndPeer})
	m.wait("unix-log", "recv", f)

	l, addr := m.listen(unix.AF_UNIX, &unix.SockaddrUnix{Name: filepath.Join(m.dir, "served")})
	client := m.connect(unix.AF_UNIX, addr)
	m.wait("unix-client", "recv", m.to(client, kcdata.FileSocket, m.accept(l), kcdata.EndPeer, m.f.B))
	m.f.B.give(l)

	l, addr = m.listen(unix.AF_UNIX, &unix.SockaddrUnix{Name: filepath.Join(m.dir, "queued")})
	m.wait("unix-queued", "recv", m.to(m.connect(unix.AF_UNIX, addr), kcdata.FileSocket, l, kcdata.EndListens|kcdata.EndAccepts, m.f.A))

	l, _ = m.listen(unix.AF_UNIX, &unix.SockaddrUnix{Name: fmt.Sprintf("@testfiles-%d-%s", os.Getpid(), m.tb.Name())})
	m.wait("unix-accept", "accept", File{Fd: m.f.Waiter.give(l), Kind: kcdata.FileSocket})
}

var (
	local4 = &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}
	local6 = &unix.SockaddrInet6{Addr: [16]byte{15: 1}}
)

func (m *maker) inetSockets() {
	for _, s := range []struct {
		name   string
		family int
		at, to unix.Sockaddr // to: nil for the listener's own
	}{{"tcp4", unix.AF_INET, local4, nil}, {"tcp6", unix.AF_INET6, local6, nil}, {"tcp-mapped", unix.AF_INET6, &unix.SockaddrInet6{}, local4}} {
		l, addr := m.listen(s.family, s.at)
		family := s.family
		if s.to != nil { // over IPv4 to a listener of both
			family, addr = unix.AF_INET, &unix.SockaddrInet4{Addr: local4.Addr, Port: addr.(*unix.SockaddrInet6).Port}
		}
		client := m.connect(family, addr)
		m.wait(s.name, "recv", m.to(client, kcdata.FileSocket, m.accept(l), kcdata.EndPair, m.f.A))
		server := m.connect(family, addr)
		m.wait(s.name+"-server", "read", m.to(m.accept(l), kcdata.FileSocket, server, kcdata.EndPair, m.f.B))
		m.f.A.give(l)
	}
	l, addr := m.listen(unix.AF_INET, local4)
	m.wait("tcp-queued", "recv", m.to(m.connect(unix.AF_INET, addr), kcdata.FileSocket, l, kcdata.EndListens|kcdata.EndAccepts, m.f.B))
	l, _ = m.listen(unix.AF_INET6, local6)
	m.wait("tcp-accept", "accept", File{Fd: m.f.Waiter.give(l), Kind: kcdata.FileSocket})

	near, far := m.socket(unix.AF_INET, unix.SOCK_DGRAM), m.socket(unix.AF_INET, unix.SOCK_DGRAM)
	m.must(unix.Bind(int(near.Fd()), local4))
	m.must(unix.Bind(int(far.Fd()), local4))
	for _, two := range [][2]*os.File{{near, far}, {far, near}} {
		to, err := unix.Getsockname(int(two[1].Fd()))
		m.must(err)
		m.must(unix.Connect(int(two[0].Fd()), to))
	}
	m.wait("udp", "recv", m.to(near, kcdata.FileSocket, far, kcdata.EndPair, m.f.A))
}
