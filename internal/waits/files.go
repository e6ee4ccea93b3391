package waits

import (
	"fmt"

	"stackshot/internal/model"
	"stackshot/kcdata"
)

// look is what one open file of a call tells of its wait.
type look struct {
	file       *kcdata.LinuxFile
	sock       *kcdata.LinuxSocket
	resource   Resource
	owners     []Owner // shared: not to be changed in place
	all        bool    // each of the owners is needed, not one of them
	free       bool    // somebody may end the wait who is not among the owners
	owes       bool
	says       FileSays
	unread     uint64
	remote     string
	evidence   Evidence
	confidence Confidence
	timed      bool
	own        bool // w's own process has the other end, too
	notes      []string
}

func (l *look) note(format string, args ...any) {
	l.notes = append(l.notes, fmt.Sprintf(format, args...))
}

// fits says which kinds of files a thread may wait at in a wait of a kind. The stack goes first:
// a thread in a call with a descriptor may sleep for something else.
func fits(k Kind, file *kcdata.LinuxFile) bool {
	switch k {
	case Pipe:
		return isPipe(file) || file.Op == kcdata.FileOpOpen
	case Socket, Netlink:
		return file.Kind == kcdata.FileSocket
	case Terminal:
		return file.Kind == kcdata.FileTerminal || file.Kind == kcdata.FilePTMaster
	case Poll:
		return file.Flags&kcdata.FilePolled != 0
	case FileLock:
		return isLock(file)
	case Descriptor:
		return !isPipe(file) && file.Kind != kcdata.FileSocket && !onDisk(file)
	case Userfault:
		return file.Kind == kcdata.FileUserfaultfd
	}
	return false
}

func isPipe(file *kcdata.LinuxFile) bool {
	return file.Kind == kcdata.FilePipe || file.Kind == kcdata.FileFIFO
}

func isLock(file *kcdata.LinuxFile) bool {
	return file.Op == kcdata.FileOpFlock || file.Op == kcdata.FileOpPOSIX || file.Op == kcdata.FileOpOFD
}

// onDisk reports whether file belongs to a file system that keeps it, or is a disk.
func onDisk(file *kcdata.LinuxFile) bool {
	return file.Kind == kcdata.FileRegular || file.Kind == kcdata.FileDirectory || file.Kind == kcdata.FileBlock
}

// byFile adds to a wait whose kind the stack told the open file that it is for, and who has its
// other end. named: the stack has names, so a kind that no row knows is none of a file's.
func (f *finder) byFile(w *Wait, named bool) {
	switch w.Kind {
	case Userfault:
		f.pager(w)
		return
	case Pipe:
		if f.unopened(w) {
			return
		}
	case Other:
		if !named && f.kindByFile(w) {
			w.Confidence = Likely
		}
	}
	looks := f.looks(w)
	switch {
	case w.Kind.AtFileSystem():
		f.place(w)
	case len(looks) == 0:
	case w.Kind == Poll:
		f.set(w, looks)
	default:
		f.one(w, mattering(looks))
	}
}

// looks takes a look at each file of w's call at which it may wait.
func (f *finder) looks(w *Wait) []look {
	out, next := f.looked[:0], 0
	for i := range w.Thread.Files {
		file := &w.Thread.Files[i]
		var sock *kcdata.LinuxSocket
		if s := w.Thread.Sockets; file.Kind == kcdata.FileSocket && next < len(s) && s[next].Fd == file.Fd {
			sock = &s[next]
			next++
		}
		if fits(w.Kind, file) {
			out = append(out, f.lookAt(w, file, sock))
		}
	}
	f.looked = out // for the next thread: nobody keeps a look
	return out
}

// lookAt asks who can end a wait at file.
func (f *finder) lookAt(w *Wait, file *kcdata.LinuxFile, sock *kcdata.LinuxSocket) look {
	l := look{file: file, sock: sock, evidence: File, confidence: Likely, free: true}
	if file.Flags&kcdata.FileTimed != 0 {
		l.timed = true
	}
	switch {
	case file.Flags&kcdata.FileClosed != 0:
		l.note("descriptor %d was closed while the thread waits at it", file.Fd)
	case file.Flags&(kcdata.FileUnread|kcdata.FileNoSet) != 0:
		l.says = NotLooked
	case isLock(file):
		f.fileLock(w, &l)
	case isPipe(file):
		f.pipe(w, &l)
	case file.Kind == kcdata.FileSocket:
		f.socket(w, &l)
	case file.Kind == kcdata.FileTerminal || file.Kind == kcdata.FilePTMaster:
		f.terminal(w, &l)
	default:
		f.event(w, &l)
	}
	if l.owes && len(l.owners) == 0 {
		l.owes = false
	}
	return l
}

// maxCallFiles is up to where the window counts the descriptors of a call.
const maxCallFiles = 65_536

// moreFiles reports whether the call has descriptors that the file has not, and how many there
// are in all.
func moreFiles(t *kcdata.Thread) (all int, few bool) {
	all = len(t.Files)
	if t.Wait != nil && t.Wait.Files > 0 {
		all = int(min(t.Wait.Files, maxCallFiles))
	}
	return all, all > len(t.Files) || t.Wait != nil && t.Wait.Flags&kcdata.WaitFewFiles != 0
}

// mattering is the one of looks that the thread sleeps at, in a call with one or two descriptors:
// of splice's two pipes an empty one that it reads or a full one that it writes.
func mattering(looks []look) *look {
	best := &looks[0]
	for i := range looks[1:] {
		if l := &looks[1+i]; weight(l) > weight(best) {
			best = l
		}
	}
	return best
}

func weight(l *look) int {
	flags := l.file.Flags
	switch {
	case flags&kcdata.FileToRead != 0 && flags&kcdata.FileEmpty != 0, flags&kcdata.FileToWrite != 0 && flags&kcdata.FileFull != 0:
		return 2
	case isPipe(l.file):
		return 0
	}
	return 1
}

// one takes l for the wait.
func (f *finder) one(w *Wait, l *look) {
	all, _ := moreFiles(w.Thread)
	w.File = &OpenFile{File: l.file, Socket: l.sock, Of: all, Says: l.says, Remote: l.remote, Own: l.own}
	w.Resource, w.Evidence, w.Timed = l.resource, l.evidence, w.Timed || l.timed
	w.Owners, w.AnyOwner = l.owners, len(l.owners) > 1 && !l.all
	w.Notes = append(w.Notes, l.notes...)
	if len(l.owners) > 0 && l.confidence == Likely {
		w.Confidence = Likely
	}
	if l.owes {
		w.File.Unread = l.unread
	}
	if isLock(l.file) {
		w.File.Mount = f.mountOf(w.Task, l.file.Dev) // who looks for the file begins there
	}
	if l.free && len(l.owners) > 0 {
		w.File.Others = 1
	}
}

// kindByFile is for a thread whose kernel stack has no names: it sleeps interruptibly in a call
// with a descriptor, so it waits at that.
func (f *finder) kindByFile(w *Wait) bool {
	if w.State.Class == model.Blocked || len(w.Thread.Files) == 0 {
		return false
	}
	file := &w.Thread.Files[0]
	for _, k := range []Kind{FileLock, Poll, Pipe, Socket, Terminal, Descriptor} {
		if fits(k, file) {
			w.Kind = k
			w.note("its stack has no names: what it waits for is known by its call alone")
			return true
		}
	}
	return false
}
