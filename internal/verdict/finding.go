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

// Finding is one thing that hangs. One of its first three fields is set; Told sets the others.
type Finding struct {
	Deadlock *waitgraph.Deadlock
	Culprit  *waitgraph.Culprit
	Convoy   *waitgraph.Convoy
	Others   []*waitgraph.Culprit // in D at the same place as Culprit, and nobody waits for any of them
	With     []waits.Owner        // who holds what Culprit holds, beside it, each once
	Weight   Weight
}

// Together are the threads in D that are told as one finding; nil: it is not of several.
func (f Finding) Together() (out []*waits.Wait) {
	if len(f.Others) == 0 {
		return nil
	}
	out = append(out, f.Culprit.Wait)
	for _, c := range f.Others {
		out = append(out, c.Wait)
	}
	return out
}

// Parts are who has a part in f, some of them twice: threads, and processes that own something as a whole.
func (f Finding) Parts() (threads []*kcdata.Thread, whole []*kcdata.Task) {
	owners := func(list ...waits.Owner) {
		for _, o := range list {
			threads = append(threads, o.Thread)
			if o.Whole && o.Task != nil {
				whole = append(whole, o.Task)
			}
		}
	}
	waiting := func(list []*waits.Wait) {
		for _, w := range list {
			threads = append(threads, w.Thread)
		}
	}
	switch {
	case f.Deadlock != nil:
		waiting(f.Deadlock.Part)
		waiting(f.Deadlock.Behind)
	case f.Culprit != nil:
		owners(f.Culprit.Owner)
		owners(f.With...)
		waiting(f.Culprit.Victims)
		waiting(f.Together())
	default:
		owners(f.Convoy.Owners...)
		waiting(f.Convoy.Waiters)
	}
	return threads, whole
}

// Findings are those of a verdict: deadlocks, threads in D, convoys, all other culprits. If only is not
// nil, they are those in which one of its threads has a part.
func Findings(v *waitgraph.Verdict, only map[*kcdata.Thread]bool) (out []Finding) {
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
	return concerning(append(out, others...), only)
}

func concerning(list []Finding, only map[*kcdata.Thread]bool) []Finding {
	if only == nil {
		return list
	}
	tasks := map[*kcdata.Task]bool{} // whether a thread of it is asked for, once that was found out
	asked := func(t *kcdata.Task) bool {
		is, known := tasks[t]
		if !known {
			is = slices.ContainsFunc(t.Threads, func(th *kcdata.Thread) bool { return only[th] })
			tasks[t] = is
		}
		return is
	}
	return slices.DeleteFunc(list, func(f Finding) bool {
		threads, whole := f.Parts()
		return !slices.ContainsFunc(threads, func(th *kcdata.Thread) bool { return only[th] }) && !slices.ContainsFunc(whole, asked)
	})
}

// owned reports whether o is one of the owners of what w waits for.
func owned(w *waits.Wait, o *waits.Owner) bool {
	return slices.ContainsFunc(w.Owners, func(x waits.Owner) bool { return same(&x, o) })
}

// holds reports whether o is an owner that holds it.
func holds(w *waits.Wait, o *waits.Owner) bool {
	return slices.ContainsFunc(w.Owners, func(x waits.Owner) bool { return x.Relation == waits.Holds && same(&x, o) })
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
