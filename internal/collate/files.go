package collate

import (
	"fmt"
	"slices"

	"stackshot/internal/capture"
	"stackshot/kcdata"
)

// files are the records of open files that threads wait at, until all threads are known. Then
// each says whether its thread still waited when the other ends were looked for, ends of threads
// that had gone on are dropped, and addresses become numbers if the file is redacted.
type files struct {
	redact  bool
	ends    *capture.Ends // nil: nobody looked
	tasks   []taskFiles
	bad     int // records that cannot be read
	taken   kcdata.LinuxFilesTaken
	stays   map[uint64]bool // objects at which a thread still waits
	awaits  map[uint32]bool // processes of which a thread still waits
	gone    map[uint32]bool // threads that had gone on
	numbers numbering[uint64]
}

// taskFiles is a task of which threads wait at open files.
type taskFiles struct {
	items   *kcdata.Editor
	threads []threadFiles
}

type threadFiles struct {
	id      capture.WaiterID
	self    bool // one of our own: nobody looks for it again
	wait    kcdata.Position
	files   kcdata.Position
	sockets kcdata.Position
}

func newFiles(c *capture.Raw) *files {
	f := &files{redact: c.Wants.Redact, ends: c.Ends, stays: map[uint64]bool{}, awaits: map[uint32]bool{}, gone: map[uint32]bool{}, numbers: numbering[uint64]{}}
	if c.Ends != nil {
		f.taken = c.Ends.Taken
	} else {
		f.taken.Flags = kcdata.FilesNoPass | kcdata.FilesNoMounts
	}
	f.taken.Sources |= c.FileSources
	return f
}

var (
	sizeOfFile   = kcdata.SizeOf(&kcdata.LinuxFile{})
	sizeOfSocket = kcdata.SizeOf(&kcdata.LinuxSocket{})
)

// visitFile takes note of a thread's records of open files, and reports whether it is one. One
// that is short or long, or a second one, is cut.
func (t *taskBytes) visitFile(th *threadAt, it kcdata.Item) bool {
	elem, size, count := it.Elem()
	isArray, sound := it.Type == kcdata.TypeArray, count > 0 && count <= kcdata.MaxFilesOfThread
	switch {
	case isArray && elem == kcdata.TypeLinuxFile && th.files.IsZero() && sound && size >= sizeOfFile:
		th.files = it.Position()
	case isArray && elem == kcdata.TypeLinuxSocket && th.sockets.IsZero() && sound && size >= sizeOfSocket:
		th.sockets = it.Position()
	case it.Type == kcdata.TypeLinuxFile || it.Type == kcdata.TypeLinuxSocket,
		isArray && (elem == kcdata.TypeLinuxFile || elem == kcdata.TypeLinuxSocket):
		t.badFile = append(t.badFile, it.Position())
	default:
		return false
	}
	return true
}

// add takes note of a task that is complete.
func (f *files) add(t *taskBytes) {
	f.bad += len(t.badFile)
	for _, p := range t.badFile {
		t.items.Remove(p)
	}
	one := taskFiles{items: t.items}
	for i := range t.threads {
		th := &t.threads[i]
		id := capture.WaiterID{Tid: th.facts.Tid, Start: th.facts.Start}
		if w, known := f.waiter(id); known {
			f.awaits[th.facts.Tgid] = f.awaits[th.facts.Tgid] || w.Still
			f.gone[th.facts.Tid] = !w.Still
		}
		if !th.files.IsZero() || !th.sockets.IsZero() {
			one.threads = append(one.threads, threadFiles{id, th.self, th.wait, th.files, th.sockets})
		}
	}
	if len(one.threads) > 0 {
		f.tasks = append(f.tasks, one)
	}
}

func (f *files) waiter(id capture.WaiterID) (w capture.Waiter, known bool) {
	if f.ends != nil {
		w, known = f.ends.Waiters[id]
	}
	return w, known
}

// drop forgets a task that is not in the file after all.
func (f *files) drop(t *taskBytes) {
	f.tasks = slices.DeleteFunc(f.tasks, func(one taskFiles) bool { return one.items == t.items })
}

// settle finishes the records of all tasks, and what was read after the release.
func (f *files) settle(c *capture.Raw) {
	f.finish()
	if f.bad > 0 {
		c.Warn("files_damaged", fmt.Sprintf("%d records of open files could not be read, and are left out", f.bad))
	}
	if f.ends != nil {
		f.dropMoved()
		if f.redact {
			f.redactEnds()
		}
	}
}

// finish finishes the records of the tasks so far.
func (f *files) finish() {
	for _, t := range f.tasks {
		for i := range t.threads {
			f.thread(&t.threads[i])
		}
	}
	f.tasks = nil
}

// thread finishes the records of one thread.
func (f *files) thread(th *threadFiles) {
	after := uint32(0)
	if !th.self {
		after = f.after(th.id)
	}
	count(&f.taken.Moved, after&kcdata.FileMoved != 0)
	files := uint32(0)
	if !th.files.IsZero() {
		f.taken.Threads++
		f.note(kcdata.Patch(th.files, func(r *kcdata.LinuxFile) {
			files++
			r.Flags = r.Flags&^afterFlags | after
			if after&kcdata.FileStill != 0 && r.Object != 0 {
				f.stays[r.Object] = true
			}
			f.sum(r)
			if f.redact {
				r.Object, r.Peer, r.File = f.number(r.Object), f.number(r.Peer), f.number(r.File)
			}
		}))
	}
	if w, err := kcdata.Record[kcdata.LinuxWait](th.wait.Item()); err == nil && !th.wait.IsZero() && w.Files > files {
		f.taken.More += w.Files - files
	}
	if !th.sockets.IsZero() {
		f.note(kcdata.Patch(th.sockets, func(s *kcdata.LinuxSocket) {
			f.taken.Sockets++
			if f.redact {
				s.Local, s.Remote, s.LocalPort, s.PeerPort = [16]byte{}, [16]byte{}, 0, 0
			}
		}))
	}
}

// afterFlags are those that are known only after the release.
const afterFlags = kcdata.FileStill | kcdata.FileMoved | kcdata.FileCatches

// after is what became of a thread since the window. One that is not among those that were looked
// at is gone, unless not all were.
func (f *files) after(id capture.WaiterID) (flags uint32) {
	w, known := f.waiter(id)
	switch {
	case known && w.Still:
		flags = kcdata.FileStill
	case known:
		flags = kcdata.FileMoved
	case id.Tid != 0 && f.looked():
		flags = kcdata.FileMoved
	}
	if w.Catches {
		flags |= kcdata.FileCatches
	}
	return flags
}

// looked reports whether all threads were looked at again.
func (f *files) looked() bool {
	return f.taken.Sources&(kcdata.FilesHasPass|kcdata.FilesHasProc) != 0 && f.taken.Flags&(kcdata.FilesTimeUp|kcdata.FilesTooWanted|kcdata.FilesHung) == 0
}

func (f *files) sum(r *kcdata.LinuxFile) {
	s := &f.taken
	s.Files++
	count(&s.Closed, r.Flags&kcdata.FileClosed != 0)
	count(&s.Unread, r.Flags&(kcdata.FileUnread|kcdata.FileNoSet) != 0)
	count(&s.Opaque, r.Flags&kcdata.FileOpaque != 0)
}

// note counts a record that could not be changed.
func (f *files) note(err error) {
	if err != nil {
		f.bad++
	}
}

// number stands for an address; nothing stands for 0.
func (f *files) number(addr uint64) uint64 {
	if addr == 0 {
		return 0
	}
	return f.numbers.of(addr)
}
