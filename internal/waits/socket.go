package waits

import "stackshot/kcdata"

// Types of sockets and states of TCP (include/linux/net.h, include/net/tcp_states.h).
const (
	sockStream = 1
	sockDgram  = 2
	sockPacket = 5 // SOCK_SEQPACKET

	tcpEstablished = 1
	tcpSynSent     = 2
)

// socket is for who waits at a socket.
func (f *finder) socket(w *Wait, l *look) {
	s := l.sock
	if s == nil || l.file.Object == 0 || l.file.Flags&kcdata.FileOpaque != 0 {
		l.says = NotLooked
		return
	}
	l.resource = pair(Socket, l.file.Object, l.file.Peer)
	inet := s.Family == afInet || s.Family == afInet6
	switch {
	case s.Flags&kcdata.SocketListens != 0 || l.file.Op == kcdata.FileOpAccept:
		l.atRest()
	case l.file.Op == kcdata.FileOpConnect || inet && s.Kind == sockStream && s.State == tcpSynSent:
		f.connects(w, l)
	case s.Family == afUnix && s.Kind == sockDgram:
		f.unixDatagram(w, l)
	case s.Family == afUnix:
		f.unixStream(w, l)
	case inet && s.Kind == sockStream:
		f.connected(w, l)
	case inet:
		f.datagram(w, l)
	case s.Family == afNetlink && !toWrite(l.file):
		l.atRest()
	case s.Family == afVsock:
		l.says = Elsewhere
	default:
		l.says = NotLooked
	}
}

// connects is for who waits for a connection: to a listener with a full queue, or to another machine.
func (f *finder) connects(w *Wait, l *look) {
	if f.outside(l) {
		return
	}
	for _, p := range []part{accepts, listens} {
		at := f.side(byObject, p, l.file.Object).object
		if f.take(w, l, p, l.file.Object, !f.readThere(at)) {
			l.resource = pair(Socket, l.file.Object, 0)
			if at != 0 {
				l.resource.ID = at
			}
			return
		}
	}
}

// unixStream is for a connection on this machine, of which the kernel knows the other side.
func (f *finder) unixStream(w *Wait, l *look) {
	if l.file.Flags&kcdata.FilePeerKnown != 0 && l.file.Peer == 0 {
		l.says, l.free = NoEnd, false
		return
	}
	f.connected(w, l)
}

// connected is for a stream between two sockets. Who has bytes unread owes; so does the one that
// was connected to, if the one that connected reads and nobody reads at the other side; who was
// connected to and reads is at rest.
func (f *finder) connected(w *Wait, l *look) {
	if f.outside(l) {
		return
	}
	object := l.file.Object
	s := f.side(byObject, peers, object)
	r := f.role(w, l, s)
	if !toWrite(l.file) && r == server {
		l.atRest()
		return
	}
	unread := s.unread > 0
	asks := !toWrite(l.file) && r == client && f.alone(w, l)
	owes := (unread || asks) && !f.readThere(s.object) && !f.readThere(l.file.Peer)
	if f.take(w, l, peers, object, owes) {
		l.unread, l.resource = s.unread, pair(Socket, object, s.object)
		if owes && !unread && l.sock.Family != afUnix {
			l.confidence = Likely
			l.note("that the other side owes an answer is a guess: its process listens where this side connected")
		}
		return
	}
	if l.says == NotLooked && l.file.Flags&kcdata.FileStill == 0 {
		return
	}
	listener := f.side(byObject, accepts, object)
	if !f.take(w, l, accepts, object, !f.readThere(listener.object)) && l.says == NotFound && unaccepted(l.sock) {
		l.says = NotLooked
		l.note("nobody has accepted the connection; of the connections that wait at a listener only the first %d are looked at", queueLooked)
	}
}

// queueLooked is how many connections at a unix listener the pass looks at (QUEUE_ACCEPTS).
const queueLooked = 128

// unaccepted: the other side of a unix connection has a listener's name, and no file.
func unaccepted(s *kcdata.LinuxSocket) bool {
	const is = kcdata.SocketConnected | kcdata.SocketPeerNamed
	return s.Family == afUnix && s.Flags&is == is && s.PeerInode == 0
}

// alone reports whether w's thread waits at no other file: who polls a set may wait for anything.
func (f *finder) alone(w *Wait, l *look) bool {
	all, few := moreFiles(w.Thread)
	if l.file.Op == kcdata.FileOpEpoll {
		all--
	}
	return !few && (l.file.Flags&kcdata.FilePolled == 0 || all <= 1)
}

// unixDatagram is for a socket to which several others may send.
func (f *finder) unixDatagram(w *Wait, l *look) {
	peer := l.file.Peer
	switch {
	case f.sends(w, l):
	case l.file.Flags&kcdata.FilePeerKnown == 0 || toWrite(l.file) && peer == 0:
		l.says = NotLooked
	case peer == 0:
		l.atRest() // whoever knows its name may send
	default:
		s := f.side(byObject, peers, l.file.Object)
		if toWrite(l.file) {
			l.resource = Resource{Kind: Socket, ID: peer} // all who send to it wait for the same room
		}
		f.take(w, l, peers, l.file.Object, s.unread > 0 && !f.readThere(peer))
		l.unread, l.confidence = s.unread, Likely
	}
}

// sends is for who sends to a unix socket that has as much unread as it may. What its own socket
// is connected to says nothing: it may send to any other.
func (f *finder) sends(w *Wait, l *look) bool {
	s := f.side(byObject, crowded, l.file.Object)
	if !toWrite(l.file) || s.object == 0 || !f.take(w, l, crowded, l.file.Object, !f.readThere(s.object)) {
		return false
	}
	l.unread, l.resource = s.unread, Resource{Kind: Socket, ID: s.object}
	return true
}

// datagram is for UDP and its kin.
func (f *finder) datagram(w *Wait, l *look) {
	switch {
	case l.sock.State != tcpEstablished && toWrite(l.file):
	case l.sock.State != tcpEstablished:
		l.atRest()
	case f.outside(l):
	default:
		s := f.side(byObject, peers, l.file.Object)
		f.take(w, l, peers, l.file.Object, s.unread > 0 && !f.readThere(s.object))
		l.unread, l.confidence = s.unread, Likely
	}
}
