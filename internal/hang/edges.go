package hang

import (
	"fmt"

	"stackshot/internal/account"
	"stackshot/internal/show"
	"stackshot/internal/verdict"
	"stackshot/internal/waitgraph"
	"stackshot/internal/waits"
)

func (t *text) deadlock(d *waitgraph.Deadlock) {
	t.doubt(d)
	var roots []node
	part := inCycleFirst(d)
	for i, w := range part {
		roots = append(roots, node{thread: w.Thread})
		if i < maxPart {
			t.edge(1, w)
		}
	}
	t.left(1, len(part)-maxPart, "more thread", " of the deadlock")
	if len(d.Behind) > 0 {
		t.Line("  behind %s:", it(len(part) == 1))
		t.tree(roots, d.Behind)
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
	likely := 0
	for _, w := range d.Cycle {
		if w.Confidence == waits.Likely {
			likely++
		}
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

func (t *text) culprit(c *waitgraph.Culprit) {
	t.indented(1, verdict.Owner(&c.Owner))
	if c.Wait != nil {
		t.indented(2, t.about(c.Wait, false))
	}
	t.tree([]node{nodeOf(&c.Owner)}, c.Victims)
}

func (t *text) convoy(c *waitgraph.Convoy) {
	var roots []node
	for i := range c.Owners {
		roots = append(roots, nodeOf(&c.Owners[i]))
		if i < maxPart {
			t.indented(1, verdict.Owner(&c.Owners[i]))
		}
	}
	t.left(1, len(c.Owners)-maxPart, "more owner", "")
	t.tree(roots, c.Waiters)
}

// tree writes whom the roots keep waiting, nearest first.
func (t *text) tree(roots []node, list []*waits.Wait) {
	f := grow(roots, list)
	more := func(depth, n int) { t.left(depth, n, "more thread", "") }
	below := func(depth int, w *waits.Wait) {
		t.indented(depth, verdict.Thread(w.Task, w.Thread)+" "+t.about(w, true))
	}
	f.walk(roots, 2, below, more)
	for _, w := range f.apart[:min(len(f.apart), treeWidth)] {
		t.edge(2, w)
	}
	more(2, len(f.apart)-treeWidth)
}

// edge writes one thread and what it waits for.
func (t *text) edge(depth int, w *waits.Wait) {
	t.indented(depth, verdict.Thread(w.Task, w.Thread)+" "+t.about(w, false))
}

// about says of a wait: for what, for how long, how that is known. below: the line above names
// the owner.
func (t *text) about(w *waits.Wait, below bool) string {
	s := t.words.Phrase(w)
	if below && len(w.Owners) == 1 && w.Owners[0].Relation == waits.Holds && !w.Owners[0].Dead {
		s = t.words.Thing(w)
	}
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
