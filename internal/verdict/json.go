package verdict

import (
	"stackshot/internal/account"
	"stackshot/internal/show"
	"stackshot/internal/waits"
	"stackshot/kcdata"
)

// ThreadJSON names a thread, the same in every list.
func ThreadJSON(task *kcdata.Task, t *kcdata.Thread) show.Object {
	name := t.Name
	if name == "" {
		name = task.Name
	}
	return show.Object{
		{"tid", show.Number(t.ID)}, {"pid", show.Number(task.ID)}, {"name", show.Clean(name)}, {"ns_tids", account.NSTidsJSON(t)},
	}
}

// OwnerJSON is an owner. A thread that the file does not have has no name.
func OwnerJSON(o *waits.Owner) show.Object {
	who := show.Object{{"tid", show.Known(o.Tid)}, {"pid", show.Known(o.Pid)}}
	if o.Task != nil && o.Thread != nil {
		who = ThreadJSON(o.Task, o.Thread)
	}
	return append(who, show.Object{{"relation", show.Known(Word(o.Relation))}, {"died", Flag(o.Dead)}, {"process", Flag(o.Whole)}, {"owes", Flag(o.Owes)}, {"before_fork", Flag(o.Forked != nil)}}...)
}

// maxOwnersJSON bounds the owners of one wait: a process may have a million children.
const maxOwnersJSON = 256

// OwnersJSON are the first of a list, and how many more there are; nil for none.
func OwnersJSON(list []waits.Owner) (owners []show.Object, more *int) {
	n := min(len(list), maxOwnersJSON)
	return show.List(list[:n], OwnerJSON), show.Known(len(list) - n)
}

// Word is a stable name, fit to be shown.
func Word[S ~string](name S) string { return show.Clean(string(name)) }

// Flag is true, or absent.
func Flag(set bool) *bool { return show.Known(set) }

// ResourceJSON is what is waited for; nil if it has no number.
func ResourceJSON(r waits.Resource) show.Object {
	if r == (waits.Resource{}) {
		return nil
	}
	if r.Kind == waits.FileLock {
		return show.Object{{"kind", Word(r.Kind)}, {"id", show.Hex(r.ID)}, {"start", show.Known(startOf(r))}}
	}
	return show.Object{{"kind", Word(r.Kind)}, {"id", show.Hex(r.ID)}, {"pid", show.Known(r.Task)}}
}

// startOf is the first byte of a lock on a part of a file.
func startOf(r waits.Resource) uint64 { return max(r.Task, 1) - 1 }

// WaitJSON says what a thread waits for, without naming it; nil if it does not wait.
func WaitJSON(w *waits.Wait) show.Object {
	if w == nil {
		return nil
	}
	atMost, about := w.Age.Bounds()
	owners, more := OwnersJSON(w.Owners)
	var notes []string
	for _, note := range w.Notes {
		notes = append(notes, show.Clean(note))
	}
	return show.Object{
		{"kind", Word(w.Kind)}, {"resource", ResourceJSON(w.Resource)},
		{"owners", owners}, {"owners_left_out", more}, {"any_owner", Flag(w.AnyOwner)},
		{"age_at_most_ns", atMost}, {"age_about_ns", about},
		{"evidence", Word(w.Evidence)}, {"confidence", Word(w.Confidence)}, {"when", Word(w.When)},
		{"timed", Flag(w.Timed)}, {"file", FileJSON(w.File)}, {"probable_mount", mountJSON(w.Probably)}, {"notes", notes},
	}
}
