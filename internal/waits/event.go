package waits

import (
	"slices"

	"stackshot/kcdata"
)

// terminal is for who waits at a terminal or a pty. Who reads at the program's side waits for
// somebody to type: it is at rest. Who writes waits for who has the other side to read.
func (f *finder) terminal(w *Wait, l *look) {
	file := l.file
	if file.Object == 0 || file.Flags&kcdata.FileOpaque != 0 {
		l.says = NotLooked
		return
	}
	l.resource = pair(Terminal, file.Object, file.Peer)
	switch {
	case file.Kind == kcdata.FileTerminal && !toWrite(file):
		l.atRest()
	case file.Flags&kcdata.FilePeerKnown != 0 && file.Peer == 0 && file.Kind == kcdata.FileTerminal:
		l.note("the terminal has no other side that a process could have")
	default:
		f.take(w, l, peers, file.Object, toWrite(file) && !f.readThere(file.Peer))
		l.confidence = Likely
	}
}

// pair names the two sides of a connection as one.
func pair(k Kind, object, peer uint64) Resource {
	if peer != 0 && peer < object {
		object = peer
	}
	return Resource{Kind: k, ID: object}
}

// event is for who waits at a file that is no stream. The kernel itself may end the wait at
// most of them, so that nobody else is named; events that come as they come leave their reader
// at rest.
func (f *finder) event(w *Wait, l *look) {
	file := l.file
	if file.Object != 0 {
		l.resource = Resource{Kind: Descriptor, ID: file.Object}
	}
	switch file.Kind {
	case kcdata.FileEventfd:
		if file.Object == 0 || file.Flags&kcdata.FileOpaque != 0 {
			l.says = NotLooked
			return
		}
		f.take(w, l, shares, file.Object, false)
		l.confidence = Likely
		if !slices.ContainsFunc(l.owners, func(o Owner) bool { return o.Task != w.Task }) {
			l.owners, l.free = nil, true // the kernel may count it up: io_uring, a guest's interrupt
			if l.says == OwnEnd {
				l.says = ""
			}
		}
	case kcdata.FileTimerfd:
		l.timed = file.Flags&kcdata.FilePolled == 0
	case kcdata.FileInotify, kcdata.FileFanotify, kcdata.FileSignalfd, kcdata.FileUserfaultfd, kcdata.FileFUSE:
		l.atRest()
	}
}
