package screen

import (
	"fmt"
	"slices"
	"strings"

	"stackshot/internal/model"
	"stackshot/internal/verdict"
	"stackshot/internal/waitgraph"
	"stackshot/internal/waits"
	"stackshot/kcdata"
)

// minD is the age from which a thread in D, or one that rests where nothing should, is listed.
const minD = uint64(1e9)

// found is an entry that is being made, with the age by which it is sorted.
type found struct {
	entry
	age model.Age
}

// stuck is who cannot go on: deadlocks, those whom others wait for, threads in D, and those that
// sleep without a time-out where nothing should rest.
func (v *view) stuck() section {
	var out []found
	all := v.findings()
	for _, f := range all {
		isHolder := func(by verdict.Finding) bool { return by.Culprit != nil && isCulprits(f.Convoy, by.Culprit) }
		switch {
		case f.Deadlock != nil:
			out = append(out, v.deadlock(f.Deadlock))
		case f.Culprit != nil && !halted(f.Culprit.Reason) && !isAlone(f.Culprit):
			out = append(out, v.culprit(f.Culprit))
		case f.Convoy != nil && !slices.ContainsFunc(all, isHolder):
			out = append(out, v.convoy(f.Convoy))
		}
	}
	for _, f := range all { // stopped has these
		if f.Culprit != nil && halted(f.Culprit.Reason) {
			v.culprit(f.Culprit)
		}
	}
	out = append(out, v.leftover()...)
	return sectionOf("STUCK", out)
}

// stopped are threads that are stopped, traced or frozen, and that others wait for.
func (v *view) stopped() section {
	var out []found
	for _, f := range v.findings() {
		if f.Culprit != nil && halted(f.Culprit.Reason) {
			out = append(out, v.culprit(f.Culprit))
		}
	}
	return sectionOf("STOPPED, and others wait for it", out)
}

// sectionOf sorts what was found: deadlocks, then the longest first.
func sectionOf(title string, list []found) section {
	slices.SortStableFunc(list, func(a, b found) int {
		if first := rankDeadlock; (a.rank == first) != (b.rank == first) {
			return b.rank - a.rank
		}
		return model.LongestFirst(a.age, b.age)
	})
	out := section{title: title}
	for _, f := range list {
		out.entries = append(out.entries, f.entry)
	}
	return out
}

// findings are those of the verdict that concern a thread that is looked at.
func (v *view) findings() (out []verdict.Finding) {
	for _, f := range verdict.Told(verdict.Findings(v.o.Verdict)) {
		if v.concerns(f) {
			out = append(out, f)
		}
	}
	return out
}

func (v *view) concerns(f verdict.Finding) bool {
	looked := func(t *kcdata.Thread) bool { return v.of[t] != nil }
	any := func(list []*waits.Wait) bool {
		return slices.ContainsFunc(list, func(w *waits.Wait) bool { return looked(w.Thread) })
	}
	switch {
	case v.o.Only == nil:
		return true
	case f.Deadlock != nil:
		return any(f.Deadlock.Part) || any(f.Deadlock.Cycle) || any(f.Deadlock.Behind)
	case f.Culprit != nil:
		return looked(f.Culprit.Owner.Thread) || any(f.Culprit.Victims)
	}
	return any(f.Convoy.Waiters) || slices.ContainsFunc(f.Convoy.Owners, func(o waits.Owner) bool { return looked(o.Thread) })
}

// halted reports whether a culprit is stopped, traced or frozen.
func halted(r waitgraph.Reason) bool {
	return r == waitgraph.Stopped || r == waitgraph.Traced || r == waitgraph.Frozen
}

// isAlone reports whether nobody waits for a culprit: it is then listed with the others in D.
func isAlone(c *waitgraph.Culprit) bool {
	return len(c.Victims)+len(c.Shared) == 0 && c.Owner.Thread != nil
}

// tell marks threads that an entry names or counts.
func (v *view) tell(list []*waits.Wait) {
	for _, w := range list {
		v.told[w.Thread] = true
	}
}

// mark marks a thread that is named as the trouble.
func (v *view) mark(t *kcdata.Thread) {
	if t != nil {
		v.named[t], v.told[t] = true, true
	}
}

// taskOf is the task of the first of some waits; 0: there is none.
func taskOf(list []*waits.Wait) uint64 {
	if len(list) == 0 {
		return 0
	}
	return list[0].Task.ID
}

// deadlock is "deadlock of 2: app [812] tid 813 and tid 814, by mutexes; 14 behind".
func (v *view) deadlock(d *waitgraph.Deadlock) found {
	cycle, part := d.Cycle, max(len(d.Part), len(d.Cycle))
	v.tell(d.Part)
	v.tell(d.Behind)
	var names, things []string
	var last *kcdata.Task
	for _, w := range cycle {
		v.mark(w.Thread)
		if thing := v.words.Short(w); !slices.Contains(things, thing) && len(things) < 2 {
			things = append(things, thing)
		}
		if len(names) < examples {
			name := nameOf(w.Task, w.Thread)
			if w.Task == last {
				name = fmt.Sprintf("tid %d", w.Thread.ID)
			}
			names, last = append(names, name), w.Task
		}
	}
	s := fmt.Sprintf("deadlock of %d: ", part)
	if d.Confidence != waits.Sure {
		s = fmt.Sprintf("probably a deadlock of %d: ", part)
	}
	s += strings.Join(names, ", ")
	s += andMore(part - len(names))
	if len(d.Behind) > 0 {
		s += fmt.Sprintf("; %d behind", len(d.Behind))
	}
	s += "; each waits for the next: " + strings.Join(things, ", ")
	a := verdict.Latest(cycle)
	return found{entry: entry{line: row(age(a), s), threads: part + len(d.Behind), pid: taskOf(cycle), rank: rankDeadlock}, age: a}
}
