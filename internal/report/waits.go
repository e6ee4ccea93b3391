package report

import (
	"cmp"
	"fmt"
	"io"

	"stackshot/internal/verdict"
	"stackshot/internal/waits"
	"stackshot/kcdata"
)

// wait is what a thread waits for; nil: nothing, or it is not known.
func (v *view) wait(t *threadView) *waits.Wait {
	if v.o.Verdict == nil {
		return nil
	}
	return v.o.Verdict.Waits.Of[t.Thread]
}

// sameWait is equal for waits that are told in the same words.
type sameWait struct {
	kind     waits.Kind
	resource waits.Resource
	owner    *kcdata.Thread // the first
	owners   int
}

// waitsFor says what the threads of a group wait for, where that says more than their state
// and their stack; "" for nothing. If they wait for several things, it says what one of them
// waits for, and how many more do.
func (v *view) waitsFor(g *group) string {
	if v.words == nil {
		return ""
	}
	var first *waits.Wait
	same := map[sameWait]int{}
	key := func(w *waits.Wait) sameWait {
		k := sameWait{kind: w.Kind, resource: w.Resource, owners: len(w.Owners)}
		if len(w.Owners) > 0 {
			k.owner = w.Owners[0].Thread
		}
		return k
	}
	for _, t := range g.threads {
		if w := v.wait(t); verdict.Tells(w) {
			first = cmp.Or(first, w)
			same[key(w)]++
		}
	}
	if first == nil {
		return ""
	}
	switch n := same[key(first)]; {
	case n == len(g.threads):
		return v.words.Phrase(first)
	case n == 1:
		return fmt.Sprintf("tid %d %s", first.Thread.ID, v.words.Phrase(first))
	default:
		return fmt.Sprintf("tid %d %s, and so do %d more", first.Thread.ID, v.words.Phrase(first), n-1)
	}
}

// Stacks writes the threads in only as Text does: by task, those in the same state at the same
// place together. Errors: the writer's, *CutError.
func Stacks(w io.Writer, s *kcdata.Snapshot, only map[*kcdata.Thread]bool, o Options) error {
	o.ShowSelf, o.ShowIdle, o.Pids = true, true, nil
	v := viewOf(s, o, only)
	l := newLines(w, o)
	for _, t := range v.tasks {
		if l.room.full() {
			l.room.Threads += t.shown
			continue
		}
		v.taskText(l, t)
	}
	return l.close()
}
