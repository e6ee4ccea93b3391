package verdict

import (
	"slices"
	"time"

	"stackshot/internal/waitgraph"
	"stackshot/internal/waits"
	"stackshot/kcdata"
)

// Judge finds out what the threads of s wait for, and what hangs. minWait 0: 1 s. A command
// calls it once, after the user stacks of s have their names.
func Judge(s *kcdata.Snapshot, minWait time.Duration) *waitgraph.Verdict {
	return waitgraph.Judge(waits.Of(s), waitgraph.Options{MinWait: minWait})
}

// Finding is one thing that hangs. One of its fields is set.
type Finding struct {
	Deadlock *waitgraph.Deadlock
	Culprit  *waitgraph.Culprit
	Convoy   *waitgraph.Convoy
}

// Findings are those of a verdict, worst first: deadlocks, threads in D, convoys, all other
// culprits.
func Findings(v *waitgraph.Verdict) (out []Finding) {
	for _, d := range v.Deadlocks {
		out = append(out, Finding{Deadlock: d})
	}
	var others []Finding
	for _, c := range v.Culprits {
		if c.Reason == waitgraph.InD {
			out = append(out, Finding{Culprit: c})
		} else {
			others = append(others, Finding{Culprit: c})
		}
	}
	for _, c := range v.Convoys {
		out = append(out, Finding{Convoy: c})
	}
	return append(out, others...)
}

// Concerns reports whether one of the threads has a part in f. Of a process that owns something
// as a whole each thread has.
func (f Finding) Concerns(threads map[*kcdata.Thread]bool) bool {
	asked := func(o waits.Owner) bool {
		return threads[o.Thread] || o.Whole && o.Task != nil && slices.ContainsFunc(o.Task.Threads, func(th *kcdata.Thread) bool { return threads[th] })
	}
	waiting := func(list []*waits.Wait) bool {
		return slices.ContainsFunc(list, func(w *waits.Wait) bool { return threads[w.Thread] })
	}
	switch {
	case f.Deadlock != nil:
		return waiting(f.Deadlock.Part) || waiting(f.Deadlock.Behind)
	case f.Culprit != nil:
		return asked(f.Culprit.Owner) || waiting(f.Culprit.Victims)
	}
	return slices.ContainsFunc(f.Convoy.Owners, asked) || waiting(f.Convoy.Waiters)
}

// owned reports whether o is one of the owners of what w waits for.
func owned(w *waits.Wait, o *waits.Owner) bool {
	for i := range w.Owners {
		if same(&w.Owners[i], o) {
			return true
		}
	}
	return false
}

// same reports whether two owners are the same thread, or one is of the other's process as a whole.
func same(a, b *waits.Owner) bool {
	if (isProcess(a) || isProcess(b)) && a.Task != nil {
		return a.Task == b.Task
	}
	if a.Thread != nil || b.Thread != nil {
		return a.Thread == b.Thread
	}
	return a.Tid == b.Tid
}

// Told are the findings as they are told: if the one owner of a convoy's lock is a culprit
// with all of the convoy among its victims, that culprit is told in the convoy's place, for
// its sentence says the same and why nothing goes on.
func Told(findings []Finding) (out []Finding) {
	culprits := map[*waits.Wait]*waitgraph.Culprit{} // by victim
	for _, f := range findings {
		if f.Culprit != nil {
			for _, w := range f.Culprit.Victims {
				culprits[w] = f.Culprit
			}
		}
	}
	told := map[*waitgraph.Culprit]bool{}
	for _, f := range findings {
		if c := holder(f.Convoy, culprits); c != nil {
			f = Finding{Culprit: c}
		}
		if f.Culprit == nil || !told[f.Culprit] {
			out = append(out, f)
			told[f.Culprit] = true
		}
	}
	return out
}

// holder is the culprit that all of a convoy wait for, since it alone has the lock; nil: there
// is none.
func holder(k *waitgraph.Convoy, culprits map[*waits.Wait]*waitgraph.Culprit) *waitgraph.Culprit {
	if k == nil || len(k.Owners) != 1 || len(k.Waiters) == 0 {
		return nil
	}
	c := culprits[k.Waiters[0]]
	if c == nil || !same(&c.Owner, &k.Owners[0]) || slices.ContainsFunc(k.Waiters, func(w *waits.Wait) bool { return culprits[w] != c }) {
		return nil
	}
	return c
}
