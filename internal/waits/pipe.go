package waits

import (
	"stackshot/internal/model"
	"stackshot/internal/sysno"
	"stackshot/kcdata"
)

// pipe is for who waits at a pipe or a FIFO. Who reads an empty one waits for all that could
// write: any of them is enough. What is in a full one is owed by its readers. A reader is owed
// nothing: a pipe does not tell an answer that is late from one that nobody asked for.
func (f *finder) pipe(w *Wait, l *look) {
	file := l.file
	if file.Object == 0 || file.Flags&kcdata.FileOpaque != 0 {
		l.says = NotLooked
		return
	}
	l.resource = Resource{Kind: Pipe, ID: file.Object}
	side, counted := writes, file.Writers
	if toWrite(file) {
		side, counted = reads, file.Readers
	}
	if counted == 0 && file.Readers+file.Writers > 0 { // by the kernel's own count, at the instant
		l.says, l.free = NoEnd, false
		if file.Kind == kcdata.FileFIFO {
			l.says, l.free = NotOpened, true
		}
		return
	}
	owes := side == reads && !f.readThere(file.Object)
	l.unread = file.Bytes
	if !f.take(w, l, side, file.Object, owes) {
		return
	}
	if s := f.side(byObject, side, file.Object); !s.unnamed && uint64(s.files) < uint64(counted) {
		l.note("%d of the %d open files of the other end were found", s.files, counted)
		l.confidence, l.free = Likely, true
	}
	if file.Kind == kcdata.FileFIFO {
		l.confidence = Likely // whoever may open it is another end
	}
}

// toWrite reports whether a thread waits for room in a pipe.
func toWrite(file *kcdata.LinuxFile) bool {
	if file.Flags&kcdata.FileToWrite == 0 {
		return false
	}
	return file.Flags&kcdata.FileToRead == 0 || file.Flags&kcdata.FileFull != 0
}

// unopened is for a thread that opens a FIFO, and waits for somebody to open its other side. It
// has no descriptor yet.
func (f *finder) unopened(w *Wait) bool {
	for i := range w.Thread.Files {
		if file := &w.Thread.Files[i]; file.Op == kcdata.FileOpOpen {
			f.notOpened(w, file)
			return true
		}
	}
	if len(w.Thread.Files) > 0 || w.Thread.Syscall == nil {
		return false
	}
	name, _ := sysno.Name(f.s.Arch, model.CallABI(w.Thread), w.Thread.Syscall.Nr)
	at, opens := map[string]int{"open": 1, "openat": 2, "creat": -1, "openat2": -1}[name]
	if !opens {
		return false
	}
	file := &kcdata.LinuxFile{Op: kcdata.FileOpOpen, Kind: kcdata.FileFIFO, Fd: -1}
	if at >= 0 && f.s.Machine.Redacted == 0 {
		file.OFlags = uint32(w.Thread.Syscall.Args[at])
		file.Flags = kcdata.FileToRead
		if file.OFlags&accessMode == writeOnly {
			file.Flags = kcdata.FileToWrite
		}
	}
	f.notOpened(w, file)
	return true
}

// Modes of open(2).
const (
	accessMode = 3
	writeOnly  = 1
)

func (f *finder) notOpened(w *Wait, file *kcdata.LinuxFile) {
	f.one(w, &look{file: file, says: NotOpened, evidence: File})
	if file.Object != 0 {
		w.Resource = Resource{Kind: Pipe, ID: file.Object}
	}
}
