package waits

import (
	"slices"

	"stackshot/internal/model"
	"stackshot/kcdata"
)

// byStack takes the kind from the names on the kernel stack, and nothing from one that no row
// knows. The kernel leaves lock functions out of a stack: a reader in D is not waiting for the
// pipe's other end, but for a lock of the pipe.
func (f *finder) byStack(w *Wait, names []*marks) {
	w.Evidence = Stack
	w.Kind, _ = match(names)
	if w.State.Class == model.Blocked && interruptible[w.Kind] {
		w.note("in D in a function that waits interruptibly for " + w.Kind.Words() + ": it may wait for a lock there")
		w.Kind = Other
	}
	switch w.Kind {
	case Timer:
		w.Timed = true
	case ChildEnd:
		f.child(w)
	case Threads, Workers, CoreDump, Namespace:
		f.forOwn(w)
	case Futex:
		if kind, ok := userKind(w.Task, w.Thread); ok {
			w.Kind = kind
		}
	case Other:
		if len(names) == 0 {
			w.Confidence = Likely
			w.note("no kernel stack of it was recorded")
		}
	}
	f.byFile(w, slices.ContainsFunc(names, func(m *marks) bool { return m != noMarks }))
	f.scanNotes(w)
}

// interruptible are the kinds of waits that no thread is in while it is in D.
var interruptible = map[Kind]bool{
	Pipe: true, Socket: true, Netlink: true, Terminal: true, Poll: true, Descriptor: true, IPC: true,
	Signal: true, AtRest: true, Futex: true, ChildEnd: true, FileLock: true,
}

// scanNotes says what the window found out of a wait for which it has no lock.
func (f *finder) scanNotes(w *Wait) {
	r := w.Thread.Wait
	if r == nil {
		return
	}
	if r.Flags&kcdata.WaitIO != 0 && w.Kind == Other {
		w.note("the kernel counts it as waiting for I/O")
	}
	if r.Flags&kcdata.WaitScanned != 0 && r.Scan > kcdata.ScanNoPath {
		w.note("its kernel stack holds the slow path of a lock, and which lock could not be found")
	}
}
