package verdict

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"time"

	"stackshot/internal/model"
	"stackshot/internal/waitgraph"
	"stackshot/internal/waits"
	"stackshot/kcdata"
)

// Judge finds out what the threads of s wait for, and what hangs. minWait 0: 1 s. A command
// calls it once, after the user stacks of s have their names.
func Judge(s *kcdata.Snapshot, minWait time.Duration) *waitgraph.Verdict {
	return waitgraph.Judge(waits.Of(s), waitgraph.Options{MinWait: minWait})
}

// Finding is one thing that hangs. One of its first three fields is set.
type Finding struct {
	Deadlock *waitgraph.Deadlock
	Culprit  *waitgraph.Culprit
	Convoy   *waitgraph.Convoy
	Others   []*waitgraph.Culprit // in D at the same place as Culprit, and nobody waits for any of them: Told puts them together
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

// Findings are those of a verdict: deadlocks, threads in D, convoys, all other culprits. If only is not
// nil, they are those that concern one of its threads.
func Findings(v *waitgraph.Verdict, only map[*kcdata.Thread]bool) []Finding {
	return concerning(all(v), only)
}

func concerning(list []Finding, only map[*kcdata.Thread]bool) []Finding {
	return slices.DeleteFunc(list, func(f Finding) bool { return only != nil && !f.Concerns(only) })
}

func all(v *waitgraph.Verdict) (out []Finding) {
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

// Threads are those that have a part in f, some of them twice. Of a process that owns something as a
// whole each thread has.
func (f Finding) Threads() iter.Seq[*kcdata.Thread] {
	return func(yield func(*kcdata.Thread) bool) {
		owners := func(list ...waits.Owner) bool {
			for _, o := range list {
				if o.Thread != nil && !yield(o.Thread) {
					return false
				}
				if o.Whole && o.Task != nil && slices.ContainsFunc(o.Task.Threads, func(th *kcdata.Thread) bool { return !yield(th) }) {
					return false
				}
			}
			return true
		}
		waiting := func(list []*waits.Wait) bool {
			return !slices.ContainsFunc(list, func(w *waits.Wait) bool { return !yield(w.Thread) })
		}
		switch {
		case f.Deadlock != nil:
			_ = waiting(f.Deadlock.Part) && waiting(f.Deadlock.Behind)
		case f.Culprit != nil:
			_ = owners(f.Culprit.Owner) && owners(CoHolders(f.Culprit)...) && waiting(f.Culprit.Victims) && waiting(f.Together())
		default:
			_ = owners(f.Convoy.Owners...) && waiting(f.Convoy.Waiters)
		}
	}
}

// Concerns reports whether one of the threads has a part in f.
func (f Finding) Concerns(threads map[*kcdata.Thread]bool) bool {
	for th := range f.Threads() {
		if threads[th] {
			return true
		}
	}
	return false
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

// Told are the findings as they are told, the heaviest first; if only is not nil, those that concern
// one of its threads. If an owner of a convoy's lock is a culprit with all of the convoy among its
// victims, that culprit is told in the convoy's place, for its sentence says the same and why nothing
// goes on. A culprit that holds what another one holds, and for which nobody else waits, is told with
// that (CoHolders). Threads in D that wait at the same place, and for which nobody waits, are one finding: each
// would say the same.
func (x *Words) Told(only map[*kcdata.Thread]bool) []Finding {
	var out []Finding
	told := map[*waitgraph.Culprit]bool{}
	first := map[place]int{} // where in out the finding of a place is
	for _, f := range all(x.v) {
		if c := x.behind(f.Convoy); c != nil && slices.ContainsFunc(f.Convoy.Owners, func(o waits.Owner) bool { return same(&c.Owner, &o) }) {
			f = Finding{Culprit: c}
		}
		if c := f.Culprit; c != nil && (told[c] || len(c.Victims) == 0 && len(c.Shared) > 0 && holds(c.Shared[0], &c.Owner)) {
			continue
		}
		told[f.Culprit] = true
		if p := placeOf(f.Culprit); p != (place{}) {
			if i, there := first[p]; there {
				out[i].Others = append(out[i].Others, f.Culprit)
				continue
			}
			first[p] = len(out)
		}
		out = append(out, f)
	}
	return x.heaviestFirst(concerning(out, only))
}

// place is equal for threads in D that wait at the same place: for the same thing, at the same
// file system, on the same disk; where none of these is known, with the same kernel stack.
type place struct {
	kind     waits.Kind
	resource waits.Resource
	mount    uint64 // the number of its device
	guess    bool   // mount
	device   string
	stack    string // addresses
}

// placeOf is where a culprit waits in D, if nobody waits for it; zero: it is another one, or the
// place is not known.
func placeOf(c *waitgraph.Culprit) (p place) {
	if c == nil || c.Wait == nil || c.Reason != waitgraph.InD || len(c.Victims)+len(c.Shared) > 0 {
		return p
	}
	w := c.Wait
	if p.resource = w.Resource; p.resource != (waits.Resource{}) {
		return p // readers and writers wait for one lock
	}
	switch {
	case w.File != nil && w.File.Mount != nil:
		p.mount = w.File.Mount.Dev
	case w.Probably != nil:
		p.mount, p.guess = w.Probably.Dev, true
	case w.File != nil && w.File.Device != "":
		p.device = w.File.Device
	case w.Function != "":
		p.stack = fmt.Sprint(w.Function, w.Thread.Kernel)
	default:
		return p
	}
	p.kind = w.Kind
	return p
}

// behind is the culprit that has all of a convoy among its victims; nil: there is none.
func (x *Words) behind(k *waitgraph.Convoy) *waitgraph.Culprit {
	if k == nil || len(k.Waiters) == 0 {
		return nil
	}
	if x.culprits == nil {
		x.culprits = map[*waits.Wait]*waitgraph.Culprit{}
		for _, c := range x.v.Culprits {
			for _, w := range c.Victims {
				x.culprits[w] = c
			}
		}
	}
	c := x.culprits[k.Waiters[0]]
	if slices.ContainsFunc(k.Waiters, func(w *waits.Wait) bool { return x.culprits[w] != c }) {
		return nil
	}
	return c
}

// Victims are all who wait for a culprit, also those that another finding tells of.
func Victims(c *waitgraph.Culprit) []*waits.Wait { return append(slices.Clip(c.Victims), c.Shared...) }

// CoHolders are who holds what a culprit holds, beside it.
func CoHolders(c *waitgraph.Culprit) (out []waits.Owner) {
	seen := map[waits.Resource]bool{}
	for _, w := range Victims(c) {
		if seen[w.Resource] || !holds(w, &c.Owner) {
			continue
		}
		seen[w.Resource] = true
		for _, o := range w.Owners {
			if o.Relation == waits.Holds && !same(&o, &c.Owner) {
				out = append(out, o)
			}
		}
	}
	return out
}

// holds reports whether o holds what w waits for.
func holds(w *waits.Wait, o *waits.Owner) bool {
	return slices.ContainsFunc(w.Owners, func(x waits.Owner) bool { return x.Relation == waits.Holds && same(&x, o) })
}

// Held is why an owner cannot act, if all threads by which it does are stopped, traced or frozen; else "".
func (x *Words) Held(o *waits.Owner) (why waitgraph.Reason) {
	threads := []*kcdata.Thread{o.Thread}
	if o.Whole && o.Task != nil {
		threads = o.Task.Threads
	}
	for _, th := range threads {
		switch {
		case th == nil || x.v.Waits == nil:
			return ""
		case model.StateOf(th).Class == model.Zombie:
			continue
		}
		w := x.v.Waits.Of[th]
		if w == nil || heldBy[w.Kind] == "" {
			return ""
		}
		why = cmp.Or(why, heldBy[w.Kind])
	}
	return why
}

var heldBy = map[waits.Kind]waitgraph.Reason{waits.Stopped: waitgraph.Stopped, waits.Traced: waitgraph.Traced, waits.Frozen: waitgraph.Frozen}

// Direct is the wait that says what a culprit has: that of a victim who waits for the culprit
// itself, or of a thread between it and its victims. That somebody waits for its end is no reason if
// there is another one. nil: nobody waits.
func Direct(c *waitgraph.Culprit) *waits.Wait {
	for _, w := range Victims(c) {
		if !waitsForEnd(w) && owned(w, &c.Owner) {
			return w
		}
	}
	for i := range c.Tree {
		if b := &c.Tree[i]; b.Depth == 0 && !waitsForEnd(b.Wait) {
			return b.Wait
		}
	}
	for _, w := range Victims(c) {
		if owned(w, &c.Owner) {
			return w
		}
	}
	return Longest(Victims(c))
}

// Longest is who has waited longest of victims, longest first, but no parent and no joiner if others
// wait: these may have begun before anything was wrong. nil: nobody waits.
func Longest(victims []*waits.Wait) *waits.Wait {
	for _, w := range victims {
		if !waitsForEnd(w) {
			return w
		}
	}
	if len(victims) > 0 {
		return victims[0]
	}
	return nil
}

// waitsForEnd reports whether w is for the end of a child, a thread or an image of a program.
func waitsForEnd(w *waits.Wait) bool {
	return w.Kind == waits.ChildEnd || w.Kind == waits.UserJoin || w.Kind == waits.Vfork
}
