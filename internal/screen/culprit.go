package screen

import (
	"fmt"
	"slices"

	"stackshot/internal/model"
	"stackshot/internal/show"
	"stackshot/internal/waitgraph"
	"stackshot/internal/waits"
)

// culprit is "sshfs [911] asleep, 3 behind: /mnt/backup (fuse.sshfs), served by it; longest ls [200]".
func (v *view) culprit(c *waitgraph.Culprit) found {
	v.mark(c.Owner.Thread)
	v.tell(c.Victims)
	v.tell(c.Shared)
	o := c.Owner
	o.Whole = o.Whole && o.Thread == nil
	s := owner(&o)
	if why, ok := reasons[c.Reason]; !ok {
		s += " does not go on"
	} else if why != "" {
		s += " " + why
	}
	if t := o.Thread; t != nil && o.Relation == waits.Runs {
		if first := model.RealTime(t); first != "" {
			s += ", real time (" + first + ")"
		}
	}
	victims := append(slices.Clone(c.Victims), c.Shared...)
	a := model.Age{}
	if len(victims) > 0 {
		a = victims[0].Age
		if n := len(victims); v.words.Sure(c) {
			s += fmt.Sprintf(", %d behind", n)
		} else {
			s += fmt.Sprintf(", probably %d behind", n)
		}
	} else if c.Wait != nil {
		a = c.Wait.Age
	}
	if parts := v.why(c, victims); len(parts) > 0 {
		s += ": " + parts.Join("; ")
	}
	e := entry{line: row(age(a), s), threads: 1 + len(victims), pid: taskOf(victims), rank: rankCulprit}
	if c.Owner.Task != nil {
		e.pid = c.Owner.Task.ID
	}
	return found{entry: e, age: a}
}

// why says what a culprit has, what it waits for itself, and who has waited longest for it.
func (v *view) why(c *waitgraph.Culprit, victims []*waits.Wait) (parts show.Parts) {
	if len(victims) > 0 {
		w := victims[0]
		parts.Add("%s", v.has(w, &c.Owner))
	}
	if w := c.Wait; w != nil && (c.Reason == waitgraph.InD || c.Reason == waitgraph.Asleep) {
		t := v.of[w.Thread]
		if t == nil {
			t = &thread{Thread: w.Thread, task: w.Task, wait: w}
		}
		at := v.at(t)
		parts.If(at != "", "waits for %s", at)
	}
	if len(victims) > 0 {
		parts.Add("longest %s", nameOf(victims[0].Task, victims[0].Thread))
	}
	return parts
}

// has says what o has that w's thread waits for; "" if that is not direct.
func (v *view) has(w *waits.Wait, o *waits.Owner) string {
	for i := range w.Owners {
		if x := &w.Owners[i]; x.Thread == o.Thread && x.Tid == o.Tid || x.Whole && x.Task == o.Task {
			switch x.Relation {
			case waits.Holds:
				return "holds " + v.words.Short(w) + asDo(len(w.Owners)-1)
			case waits.Server, waits.Pager:
				return "serves " + v.words.Short(w)
			case waits.Runs:
				return fmt.Sprintf("has CPU %d", w.Thread.Linux.CPU)
			}
			return "they wait for " + v.words.Short(w)
		}
	}
	return ""
}

// asDo says how many others hold the same; "" if nobody does.
func asDo(n int) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf(", as %s %d more", verb(n, "does", "do"), n)
}

// isCulprits reports whether a culprit holds what all of a convoy wait for: its entry says so. It
// need not be the only holder, as of a file lock whose descriptor children inherited.
func isCulprits(k *waitgraph.Convoy, c *waitgraph.Culprit) bool {
	holds := func(o waits.Owner) bool {
		return o.Thread != nil && o.Thread == c.Owner.Thread || o.Whole && o.Task != nil && o.Task == c.Owner.Task
	}
	if len(k.Waiters) == 0 || !slices.ContainsFunc(k.Owners, holds) {
		return false
	}
	victims := map[*waits.Wait]bool{}
	for _, w := range c.Victims {
		victims[w] = true
	}
	return !slices.ContainsFunc(k.Waiters, func(w *waits.Wait) bool { return !victims[w] })
}

// convoy is "50 x backend [1000] wait for a kernel rwsem, held by postgres [990] (asleep)".
func (v *view) convoy(k *waitgraph.Convoy) found {
	v.tell(k.Waiters)
	var s string
	var a model.Age
	if len(k.Waiters) > 0 {
		a = k.Waiters[0].Age
	}
	what := v.words.ShortResource(k.Resource)
	n := len(k.Waiters)
	if len(k.Owners) > 0 {
		o := &k.Owners[0]
		v.mark(o.Thread)
		s = fmt.Sprintf("%s%s, %d behind: holds %s", owner(o), ownerState(o), n, what)
		s += asDo(len(k.Owners) - 1)
	} else {
		s = fmt.Sprintf("%s, nobody is known to hold it: %d wait", what, n)
	}
	if n > 0 {
		s += "; longest " + nameOf(k.Waiters[0].Task, k.Waiters[0].Thread)
	}
	e := entry{line: row(age(a), s), threads: n, pid: taskOf(k.Waiters), rank: rankCulprit}
	if len(k.Owners) > 0 && k.Owners[0].Task != nil {
		e.pid = k.Owners[0].Task.ID
	}
	return found{entry: e, age: a}
}
