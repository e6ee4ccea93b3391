package waits

import (
	"cmp"
	"fmt"
	"slices"

	"stackshot/kcdata"
)

// set is for poll, select and epoll: any of the set ends the wait. If somebody owes by one of
// them, this one matters; else all are alternatives, if all are known.
func (f *finder) set(w *Wait, looks []look) {
	all, few := moreFiles(w.Thread)
	var owed, rest []*look
	free := all - min(all, len(w.Thread.Files)) // those that were not recorded
	all = len(looks) + free                     // without the epoll itself
	for i := range looks {
		switch l := &looks[i]; {
		case l.owes:
			owed = append(owed, l)
		case l.free:
			free++
			rest = append(rest, l)
		default:
			rest = append(rest, l)
		}
	}
	handler := len(w.Thread.Files) > 0 && w.Thread.Files[0].Flags&kcdata.FileCatches != 0
	switch {
	case len(owed) > 0:
		slices.SortStableFunc(owed, compareLooks)
		f.one(w, owed[0])
		w.File.Others = max(w.File.Others, all-1)
	case free > 0 || few || handler:
		f.idleSet(w, rest)
		w.File.Others = all
	default:
		f.allOf(w, rest)
	}
	w.File.Of = all
	if len(w.Owners) > 0 {
		w.Confidence = Likely
	}
}

func compareLooks(a, b *look) int {
	return cmp.Or(-cmp.Compare(a.unread, b.unread), cmp.Compare(a.file.Fd, b.file.Fd), cmp.Compare(a.file.Object, b.file.Object))
}

// idleSet is for a set by which nobody owes, and which somebody may end who is not known.
func (f *finder) idleSet(w *Wait, looks []*look) {
	best := looks[0]
	for _, l := range looks[1:] {
		if best.says != l.says && best.says != Serves {
			if l.says == Serves {
				best = l
				continue
			}
			best = &look{file: best.file, sock: best.sock, resource: best.resource, evidence: File}
		}
	}
	l := look{file: best.file, sock: best.sock, says: best.says, evidence: File, timed: looks[0].timed}
	if len(looks) == 1 {
		l.resource, l.remote, l.notes = best.resource, best.remote, best.notes
	}
	f.one(w, &l)
}

// allOf makes the owners of each of looks alternatives. If one look has them all, this one matters.
func (f *finder) allOf(w *Wait, looks []*look) {
	var by []*look
	for _, l := range looks {
		if len(l.owners) > 0 {
			by = append(by, l)
		}
	}
	if len(by) == 0 {
		by = looks
	}
	f.one(w, by[0])
	if len(by) == 1 {
		return
	}
	type key struct {
		pid  uint32
		task *kcdata.Task
	}
	seen := map[key]bool{}
	w.Owners, w.Resource, w.Evidence, w.File.Says, w.File.Remote = nil, Resource{}, After, "", ""
	for _, l := range by {
		for _, o := range l.owners {
			if k := (key{o.Pid, o.Task}); !seen[k] {
				seen[k] = true
				w.Owners = append(w.Owners, o)
			}
		}
	}
	if len(w.Owners) > maxSide {
		w.note(fmt.Sprintf("more than %d processes have the other ends of what it waits for, so none is named", maxSide))
		w.Owners, w.File.Others = nil, len(looks)
	}
	w.AnyOwner = len(w.Owners) > 1
}
