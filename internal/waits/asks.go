package waits

import (
	"net/netip"
	"slices"

	"stackshot/kcdata"
)

// role is which side of a connection a thread is on. One of TCP does not keep it, so it is known
// by who listens: likely, and no more. Of a unix socket's two ends, that which was accepted has
// the listener's address.
type role uint8

const (
	unknown role = iota
	client
	server
)

// role is that of w's process at the connection of l; there are those who have the other side.
func (f *finder) role(w *Wait, l *look, there *side) role {
	s := l.sock
	var here, far bool
	object := l.file.Object
	switch {
	case s.Family == afUnix:
		here, far = s.Flags&kcdata.SocketNamed != 0, s.Flags&kcdata.SocketPeerNamed != 0
	case s.LocalPort != 0 && s.PeerPort != 0:
		_, here = f.ends.ports[port{s.NetNS, s.LocalPort}]
		_, far = f.ends.ports[port{s.NetNS, s.PeerPort}]
	default: // redacted: by the listeners that were found for the connection
		all := f.side(byObject, listens, object).who
		here = slices.ContainsFunc(all, func(h holder) bool { return h.owner.Task == w.Task })
		far = f.listensFar(object, there, func(t holder) bool {
			return slices.ContainsFunc(all, func(h holder) bool { return t.owner.Pid == h.owner.Pid && t.start == h.start })
		})
	}
	switch {
	case here && !far:
		return server
	case far && !here:
		return client
	}
	return unknown
}

// listensFar reports whether one of there, who have the other end of object, listens. It is found
// out once.
func (f *finder) listensFar(object uint64, there *side, does func(h holder) bool) bool {
	far, ok := f.ends.far[object]
	if !ok {
		far = slices.ContainsFunc(there.who, does)
		f.ends.far[object] = far
	}
	return far
}

// outside reports whether l's connection leaves the machine, and says where to.
func (f *finder) outside(l *look) bool {
	s := l.sock
	if s.Family != afInet && s.Family != afInet6 {
		return false
	}
	if _, here := f.ends.locals[s.Remote]; here {
		return false
	}
	to := address(s, s.Remote)
	if !to.IsValid() || to.IsLoopback() || to.IsUnspecified() || to == address(s, s.Local) {
		return false
	}
	l.says, l.free, l.evidence = Elsewhere, true, File
	l.remote = netip.AddrPortFrom(to, s.PeerPort).String()
	return true
}

// address is one of s's; IPv4 in the first four bytes, or mapped into IPv6.
func address(s *kcdata.LinuxSocket, a [16]byte) netip.Addr {
	if s.Family == afInet || s.Flags&kcdata.SocketV4 != 0 && [12]byte(a[4:]) == [12]byte{} {
		return netip.AddrFrom4([4]byte(a[:4]))
	}
	return netip.AddrFrom16(a).Unmap()
}
