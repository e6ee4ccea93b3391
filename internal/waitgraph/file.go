package waitgraph

import (
	"slices"

	"stackshot/internal/waits"
	"stackshot/kcdata"
)

const accessMode, readWrite = 3, 2 // O_ACCMODE, O_RDWR

// isEnd reports whether r is of somebody who has the other end of what is waited at.
func isEnd(r waits.Relation) bool {
	switch r {
	case waits.OtherEnd, waits.Listener, waits.Server, waits.Pager:
		return true
	}
	return false
}

// fileOf is the open file that w is for; an empty one if none is known.
func fileOf(w *waits.Wait) *kcdata.LinuxFile {
	if w.File == nil || w.File.File == nil {
		return &kcdata.LinuxFile{}
	}
	return w.File.File
}

// atRest reports whether w is for the next request, whoever sends it.
func atRest(w *waits.Wait) bool { return w.File != nil && w.File.Says == waits.Serves }

// isPolled reports whether w is for one of several descriptors, or for one that is polled: who
// polls may be woken by something that nobody sees.
func isPolled(w *waits.Wait) bool {
	f := fileOf(w)
	return w.Kind == waits.Poll || f.Flags&kcdata.FilePolled != 0 || f.Op == kcdata.FileOpPoll || f.Op == kcdata.FileOpEpoll
}

// forRoom reports whether w is for room to write.
func forRoom(w *waits.Wait) bool {
	f := fileOf(w)
	return f.Op != kcdata.FileOpConnect && f.Flags&(kcdata.FileToWrite|kcdata.FileToRead) == kcdata.FileToWrite
}

// forPerson reports whether w is for what somebody types at a terminal, and for nothing else.
func forPerson(w *waits.Wait) bool {
	return !forRoom(w) && (w.File == nil || w.File.Of <= 1) && slices.ContainsFunc(w.Thread.Files, func(f kcdata.LinuxFile) bool { return f.Kind == kcdata.FileTerminal && f.Flags&kcdata.FileToRead != 0 })
}

// goesOn reports whether w's thread goes on whatever its owners do: it is at rest; or a timeout
// or another descriptor ends its wait at files where nobody owes it anything.
func goesOn(w *waits.Wait) bool {
	return atRest(w) || (w.Timed || hasOthers(w)) && len(w.Owners) > 0 && !slices.ContainsFunc(w.Owners, func(o waits.Owner) bool { return !isEnd(o.Relation) || o.Owes })
}

// hasOthers reports whether somebody else than its owners may end w.
func hasOthers(w *waits.Wait) bool { return w.File != nil && w.File.Others > 0 }

// wakesItself reports whether o, an owner of w, is w's own process, which has the other end on
// purpose: to wake its poll from a signal handler, or to keep a FIFO open.
func wakesItself(w *waits.Wait, o waits.Owner) bool {
	f := fileOf(w)
	return isEnd(o.Relation) && o.Task == w.Task && (isPolled(w) || f.Flags&kcdata.FileCatches != 0 ||
		f.Kind == kcdata.FileFIFO && f.OFlags&accessMode == readWrite)
}

// isSureEnd reports whether w ends by o alone, if o has the other end: not if somebody else may
// open it, or if w's thread polls.
func isSureEnd(w *waits.Wait, o waits.Owner) bool {
	f := fileOf(w)
	switch f.Kind {
	case kcdata.FilePipe, kcdata.FileSocket, kcdata.FileUserfaultfd, kcdata.FileFUSE, kcdata.FileRegular, kcdata.FileDirectory:
	case kcdata.FileOther: // no descriptor: a page fault, or a path on FUSE
		if o.Relation != waits.Server && o.Relation != waits.Pager {
			return false
		}
	default:
		return false
	}
	return !isPolled(w) && o.Task != w.Task
}

// sleepsAtFile reports whether threads wait for k at a file, where somebody outside may be the
// next to do something.
func sleepsAtFile(k waits.Kind) bool {
	switch k {
	case waits.Poll, waits.Pipe, waits.Socket, waits.Terminal, waits.Descriptor, waits.Netlink, waits.IOUring, waits.Signal, waits.IPC, waits.Other, waits.AtRest:
		return true
	}
	return false
}

// isAbroad reports whether w is for what somebody outside the machine sends.
func isAbroad(w *waits.Wait) bool {
	return !isPolled(w) && w.File != nil && w.File.Says == waits.Elsewhere
}
