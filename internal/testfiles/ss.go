//go:build linux

package testfiles

import (
	"bytes"
	"fmt"
	"net/netip"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"stackshot/internal/testneed"
)

// Socket is one row of ss.
type Socket struct {
	Netid  string // u_str, tcp, ...
	State  string // ESTAB, LISTEN, ...
	In     uint64 // Recv-Q: bytes that lie unread; of a listening socket the connections
	Out    uint64 // Send-Q
	Inode  uint64
	Peer   uint64         // unix: the inode of the other end; 0: none
	Local  netip.AddrPort // TCP, UDP
	Remote netip.AddrPort
	Users  []User
}

// User is who has a socket.
type User struct{ Pid, Fd int }

// Sockets asks ss for all sockets of this network namespace: unix, TCP and UDP.
func Sockets(tb testing.TB) []Socket {
	tb.Helper()
	testneed.Program(tb, "ss")
	var all []Socket
	for _, flags := range []string{"-Hxap", "-Htuanpe"} {
		out, err := exec.Command("ss", flags).Output()
		if err != nil {
			tb.Fatalf("ss %s: %v", flags, err)
		}
		rows, err := parseSs(out)
		if err != nil {
			tb.Fatalf("ss %s: %v", flags, err)
		}
		all = append(all, rows...)
	}
	return all
}

// parseSs reads rows with a Netid and without headings.
func parseSs(out []byte) ([]Socket, error) {
	var all []Socket
	for line := range bytes.Lines(out) {
		f := strings.Fields(string(line))
		if len(f) < 6 {
			return nil, fmt.Errorf("%d columns: %q", len(f), line)
		}
		s := Socket{Netid: f[0], State: f[1]}
		var err error
		if s.In, err = strconv.ParseUint(f[2], 10, 64); err == nil {
			s.Out, err = strconv.ParseUint(f[3], 10, 64)
		}
		if err == nil && (strings.HasPrefix(s.Netid, "u_")) {
			err = s.unix(f[4:])
		} else if err == nil {
			err = s.inet(f[4:])
		}
		if err != nil {
			return nil, fmt.Errorf("%q: %w", line, err)
		}
		all = append(all, s)
	}
	return all, nil
}

// unix reads "PATH INODE * PEER users:(...)".
func (s *Socket) unix(f []string) (err error) {
	if len(f) < 4 {
		return fmt.Errorf("%d columns", len(f))
	}
	if s.Inode, err = strconv.ParseUint(f[1], 10, 64); err != nil {
		return err
	}
	if s.Peer, err = strconv.ParseUint(f[3], 10, 64); err != nil {
		return err
	}
	s.Users, err = users(f[4:])
	return err
}

// inet reads "LOCAL PEER users:(...) ino:INODE ...".
func (s *Socket) inet(f []string) (err error) {
	s.Local, s.Remote = address(f[0]), address(f[1])
	for _, w := range f[2:] {
		if n, ok := strings.CutPrefix(w, "ino:"); ok {
			if s.Inode, err = strconv.ParseUint(n, 10, 64); err != nil {
				return err
			}
		}
	}
	s.Users, err = users(f[2:])
	return err
}

// address reads "[::1]:80", "127.0.0.1%lo:80"; the zero address where a "*" stands.
func address(s string) netip.AddrPort {
	host, port, _ := cutLast(s, ":")
	host, _, _ = strings.Cut(host, "%")
	n, _ := strconv.ParseUint(port, 10, 16)
	addr, _ := netip.ParseAddr(strings.Trim(host, "[]"))
	return netip.AddrPortFrom(addr.Unmap(), uint16(n))
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// users reads users:(("name",pid=1,fd=2),("name",pid=3,fd=4)).
func users(f []string) ([]User, error) {
	var out []User
	_, rest, _ := strings.Cut(strings.Join(f, " "), "users:(")
	for {
		_, after, more := strings.Cut(rest, ",pid=")
		if !more {
			return out, nil
		}
		var u User
		if _, err := fmt.Sscanf(after, "%d,fd=%d", &u.Pid, &u.Fd); err != nil {
			return nil, err
		}
		out, rest = append(out, u), after
	}
}
