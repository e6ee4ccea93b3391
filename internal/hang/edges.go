package hang

import (
	"fmt"
	"slices"

	"stackshot/internal/account"
	"stackshot/internal/show"
	"stackshot/internal/verdict"
	"stackshot/internal/waitgraph"
	"stackshot/internal/waits"
	"stackshot/kcdata"
)

func (t *text) deadlock(d *waitgraph.Deadlock) {
	t.doubt(d)
	part := inCycleFirst(d)
	for _, w := range part[:min(len(part), maxPart)] {
		t.edge(1, w)
	}
	t.left(1, len(part)-maxPart, "more thread", " of the deadlock")
	if len(d.Behind) > 0 {
		t.Line("  behind %s:", it(len(part) == 1))
		t.tree(d.Tree, len(part) == 1)
	}
}

func it(one bool) string {
	if one {
		return "it"
	}
	return "them"
}

// doubt says why a deadlock is only probable.
func (t *text) doubt(d *waitgraph.Deadlock) {
	if d.Confidence == waits.Sure {
		return
	}
	if !t.v.Waits.OneInstant {
		t.Words("  ", "\"Probably\": the file is not of one instant, so the waits may be of different moments.")
	}
	likely, caught, other := 0, 0, t.v.Waits.OneInstant
	for _, w := range d.Cycle {
		if w.Confidence == waits.Likely {
			likely++
		}
		if w.File != nil && w.File.File != nil && w.File.File.Flags&kcdata.FileCatches != 0 {
			caught++
		}
	}
	if caught > 0 {
		t.Words("  ", "\"Probably\": a handler for signals may end a wait of the cycle (%d of %d).", caught, len(d.Cycle))
	}
	if other && caught+likely == 0 {
		t.Words("  ", "\"Probably\": something else may end a wait of the cycle: a timeout, another descriptor, somebody who opens the file.")
	}
	if likely > 0 {
		t.Words("  ", "\"Probably\": not each wait of the cycle is sure (%d of %d).", likely, len(d.Cycle))
	}
}

// inCycleFirst are the waits of a deadlock: a shortest cycle in its order, then the others.
func inCycleFirst(d *waitgraph.Deadlock) []*waits.Wait {
	seen := make(map[*waits.Wait]bool, len(d.Cycle))
	out := append([]*waits.Wait{}, d.Cycle...)
	for _, w := range d.Cycle {
		seen[w] = true
	}
	for _, w := range d.Part {
		if !seen[w] {
			out = append(out, w)
		}
	}
	return out
}

func (t *text) culprit(f verdict.Finding) {
	c := f.Culprit
	t.indented(1, verdict.Culprit(c))
	if c.Wait != nil {
		t.indented(2, t.about(c.Wait, false))
	}
	for i := range f.With[:min(len(f.With), maxPart)] {
		s := verdict.Owner(&f.With[i]) + ", which holds the same"
		if why := t.words.Held(&f.With[i]); why != "" {
			s += " and " + verdict.Why(why)
		}
		t.indented(1, s)
	}
	t.left(1, len(f.With)-maxPart, "more owner", "")
	t.tree(c.Tree, true)
	t.left(2, len(c.Shared), "more thread", " below another finding, too")
}

// together writes threads in D at the same place, those that were asked for first.
func (t *text) together(list []*waits.Wait) {
	slices.SortStableFunc(list, func(a, b *waits.Wait) int {
		if x, y := t.o.Only[a.Thread], t.o.Only[b.Thread]; x != y && x {
			return -1
		} else if x != y {
			return 1
		}
		return 0
	})
	for _, w := range list[:min(len(list), treeWidth)] { // the title says what they wait for
		t.indented(1, verdict.Thread(w.Task, w.Thread)+known(w))
	}
	t.left(1, len(list)-treeWidth, "more thread", "")
}

func (t *text) convoy(c *waitgraph.Convoy) {
	for i := range c.Owners[:min(len(c.Owners), maxPart)] {
		o := &c.Owners[i]
		t.indented(1, verdict.Owner(o))
		if w := t.v.Waits.Of[o.Thread]; w != nil && !o.Whole {
			t.indented(2, t.about(w, false))
		}
	}
	t.left(1, len(c.Owners)-maxPart, "more owner", "")
	for _, w := range c.Waiters[:min(len(c.Waiters), treeWidth)] {
		t.edge(2, w)
	}
	t.left(2, len(c.Waiters)-treeWidth, "more thread", "")
}

// tree writes who is kept waiting, nearest first. one: there is one root, and it was named.
func (t *text) tree(branches []waitgraph.Branch, one bool) {
	prune(branches).walk(-1, 2, func(depth int, b *waitgraph.Branch) {
		w := b.Wait
		t.indented(depth, verdict.Thread(w.Task, w.Thread)+" "+t.about(w, one || b.Depth > 0))
	}, func(depth, n int) { t.left(depth, n, "more thread", "") })
}

// edge writes one thread and what it waits for.
func (t *text) edge(depth int, w *waits.Wait) {
	t.indented(depth, verdict.Thread(w.Task, w.Thread)+" "+t.about(w, false))
}

// about says of a wait: for what, for how long, how that is known. below: the line above names
// the owner.
func (t *text) about(w *waits.Wait, below bool) string {
	s := t.words.Phrase(w)
	if below && len(w.Owners) == 1 && (w.Owners[0].Relation == waits.Holds || w.Owners[0].Relation == waits.Server) && !w.Owners[0].Dead {
		s = t.words.Thing(w)
	}
	return s + known(w)
}

// known says for how long somebody has waited, and where that is known from.
func known(w *waits.Wait) (s string) {
	if age := account.Age(w.Age); age != "" {
		s += "," + age
	}
	if known := verdict.Evidence(w); known != "" {
		s += " (" + known + ")"
	}
	if notes := verdict.Notes(w); notes != "" {
		s += "; " + notes
	}
	return s
}

// left says how many are not shown, if any are.
func (t *text) left(depth, n int, what, of string) {
	if n > 0 {
		t.indented(depth, fmt.Sprintf("and %s%s", show.Count(n, what), of))
	}
}

// indented writes one line of a tree.
func (t *text) indented(depth int, s string) { t.Line("%*s%s", 2*depth, "", s) }
