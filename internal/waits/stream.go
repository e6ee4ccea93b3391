package waits

import (
	"slices"

	"stackshot/internal/model"
	"stackshot/kcdata"
)

// take makes those who have part p of the ends of object the owners of l; it reports whether
// anybody has it. What was read after the release counts only if the thread still waited then.
// A handler for signals may end the wait, and so may who has a file that is on its way through a socket.
func (f *finder) take(w *Wait, l *look, p part, object uint64, owes bool) bool {
	if !f.still(l) {
		return false
	}
	s := f.side(byObject, p, object)
	return f.takeSide(w, l, s, owes)
}

func (f *finder) takeSide(w *Wait, l *look, s *side, owes bool) bool {
	owners, mine := s.others(w.Task, owes)
	l.owners, l.owes, l.evidence, l.says = owners, owes, After, ""
	l.free = s.tool || s.crowd || s.full || s.strangers > 0 || s.younger > 0
	if !l.free && !s.loose && !s.unnamed && l.file.Flags&kcdata.FileCatches == 0 {
		l.confidence = Sure
	}
	s.notes(l)
	if mine {
		f.mine(w, l, s.relation)
	}
	switch {
	case len(l.owners) > 0:
		if !slices.ContainsFunc(l.owners, func(o Owner) bool { return o.Thread != nil }) {
			l.says = Elsewhere
		}
		return true
	case mine || s.crowd || s.tool || s.strangers > 0 || s.younger > 0:
		return true
	}
	l.says, l.free, l.confidence, l.evidence = f.nobody(), true, Likely, File
	return false
}

// notes says what is not certain of s.
func (s *side) notes(l *look) {
	switch {
	case s.crowd:
		l.note("more than %d processes have the other end, so none is named", maxSide)
	case s.full:
		l.note("only the first %d descriptors of the other end were kept", maxSide)
	case s.tool:
		l.note("this program has the other end")
	case s.strangers > 0:
		l.note("a process with another start time than in this file has the other end")
	case s.younger > 0:
		l.note("a process that began after the capture has the other end")
	case s.loose:
		l.note("there are more references to the other end than descriptors: somebody else may have it, too")
	}
}

// still reports whether what was read after the release is of the same wait.
func (f *finder) still(l *look) bool {
	if l.file.Flags&kcdata.FileStill != 0 && l.file.Flags&kcdata.FileMoved == 0 && f.s.FilesTaken != nil {
		return true
	}
	l.says = NotLooked
	if l.file.Flags&kcdata.FileMoved != 0 {
		l.note("it had gone on before the other end was looked for")
	}
	return false
}

// nobody is what is to be said if no end was found.
func (f *finder) nobody() FileSays {
	t := f.s.FilesTaken
	if t == nil || t.Sources&kcdata.FilesHasPass == 0 && (t.Sources&kcdata.FilesHasProc == 0 || t.Unsettled > 0) {
		return NotLooked
	}
	if t.Flags&(kcdata.FilesTimeUp|kcdata.FilesTooMany|kcdata.FilesNoPass|kcdata.FilesHung|kcdata.FilesTooWanted) != 0 {
		return NotLooked
	}
	return NotFound
}

// mine is for a thread whose own process has the other end, too: its other threads may end the
// wait. If it has none, nobody does: a mistake, but for who polls, who has a handler for signals,
// and who keeps a FIFO open both ways, so that it never ends.
func (f *finder) mine(w *Wait, l *look, r Relation) {
	flags := l.file.Flags
	switch {
	case threads(w.Task) > 1:
		o := ownProcess(w, r)
		o.Owes = l.owes
		l.owners = append(slices.Clone(l.owners), o)
	case len(l.owners) > 0 && r == OtherEnd:
		l.own = true
		l.note("its own process has the other end open, too, and would not see the others close it")
	case len(l.owners) > 0:
	case flags&kcdata.FileCatches != 0:
		l.note("its own process alone has the other end; a handler for signals may end the wait")
		l.free, l.owes = true, false
	case l.file.Kind == kcdata.FileFIFO:
		l.note("its own process keeps it open both ways")
		l.says, l.free, l.owes = Serves, true, false
	case flags&kcdata.FilePolled != 0:
		l.note("its own process alone has the other end")
	default:
		l.says, l.confidence, l.owes = OwnEnd, Likely, false
		l.owners = []Owner{ownProcess(w, r)}
	}
}

// ownProcess is w's own process as an owner.
func ownProcess(w *Wait, r Relation) Owner {
	return Owner{Task: w.Task, Thread: leaderOf(w.Task), Tid: uint32(w.Task.ID), Pid: uint32(w.Task.ID), Relation: r, Whole: true}
}

// threads counts the living threads of task, up to 2.
func threads(task *kcdata.Task) (n int) {
	for _, t := range task.Threads {
		if model.StateOf(t).Class != model.Zombie {
			if n++; n > 1 {
				break
			}
		}
	}
	return n
}

// readThere reports whether a thread waits to read from object: what lies there is then just
// being taken.
func (f *finder) readThere(object uint64) bool {
	_, ok := f.ends.reading[object]
	return ok
}

// atRest is for a thread that waits for the next request.
func (l *look) atRest() {
	l.says, l.free, l.owes, l.owners, l.confidence = Serves, true, false, nil, Likely
}
