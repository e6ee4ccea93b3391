package verdict

import (
	"cmp"
	"fmt"
	"slices"

	"stackshot/internal/model"
	"stackshot/internal/waitgraph"
	"stackshot/internal/waits"
	"stackshot/kcdata"
)

// Told are the findings as they are told, the heaviest first; if only is not nil, those in which one of
// its threads has a part. Three things that would be told twice are told once:
//   - a convoy, if an owner of its lock is a culprit with all of the convoy among its victims: that
//     culprit is told, whose sentence says the same and why nothing goes on;
//   - a culprit whose waiters all wait for others that are told, too, for what it holds with these (With);
//   - threads in D that wait at the same place, and for which nobody waits (Others).
func (x *Words) Told(only map[*kcdata.Thread]bool) []Finding {
	var out []Finding
	told := map[*waitgraph.Culprit]bool{}
	first := map[place]int{} // where in out the finding of a place is
	direct := x.direct()
	for _, f := range Findings(x.v, nil) {
		if c := x.behind(f.Convoy); c != nil && slices.ContainsFunc(f.Convoy.Owners, func(o waits.Owner) bool { return same(&c.Owner, &o) }) {
			f = Finding{Culprit: c}
		}
		c := f.Culprit
		if c != nil && (told[c] || isCoHolder(c, direct)) {
			continue
		}
		told[c] = true
		if p := placeOf(c); p != (place{}) {
			if i, there := first[p]; there {
				out[i].Others = append(out[i].Others, c)
				continue
			}
			first[p] = len(out)
		}
		if c != nil {
			f.With = coHolders(c)
		}
		out = append(out, f)
	}
	out = concerning(out, only)
	for i := range out {
		out[i].Weight = x.weigh(out[i])
	}
	slices.SortStableFunc(out, func(a, b Finding) int { return a.Weight.Compare(b.Weight) })
	return out
}

// direct are the waits for something that a culprit holds with which they are told.
func (x *Words) direct() map[*waits.Wait]bool {
	direct := map[*waits.Wait]bool{}
	for _, c := range x.v.Culprits {
		if len(c.Victims) == 0 {
			continue // it may not be told
		}
		for _, w := range Victims(c) {
			if !direct[w] && holds(w, &c.Owner) {
				direct[w] = true
			}
		}
	}
	return direct
}

// isCoHolder reports whether all who wait for c are told with others that hold the same.
func isCoHolder(c *waitgraph.Culprit, direct map[*waits.Wait]bool) bool {
	return len(c.Victims) == 0 && len(c.Shared) > 0 && !slices.ContainsFunc(c.Shared, func(w *waits.Wait) bool { return !direct[w] || !holds(w, &c.Owner) })
}

// coHolders are who holds what c holds, beside it, each once.
func coHolders(c *waitgraph.Culprit) (out []waits.Owner) {
	held := map[waits.Resource]bool{}
	for _, w := range Victims(c) {
		if len(w.Owners) > 0 && !held[w.Resource] && holds(w, &c.Owner) {
			held[w.Resource] = true
		}
	}
	if len(held) == 0 {
		return nil
	}
	type key struct {
		task   *kcdata.Task
		thread *kcdata.Thread
		tid    uint32
	}
	seen := map[key]bool{}
	for _, w := range Victims(c) {
		if !held[w.Resource] || w.Resource == (waits.Resource{}) && !holds(w, &c.Owner) {
			continue
		}
		for _, o := range w.Owners {
			k := key{thread: o.Thread, tid: o.Tid}
			if isProcess(&o) {
				k = key{task: o.Task}
			}
			if o.Relation == waits.Holds && !seen[k] && !same(&o, &c.Owner) {
				seen[k] = true
				out = append(out, o)
			}
		}
	}
	return out
}

// Held is why an owner cannot act, if all threads by which it does are stopped, traced or frozen; else "".
func (x *Words) Held(o *waits.Owner) waitgraph.Reason {
	if !o.Whole || o.Task == nil {
		return x.heldOf(o.Thread)
	}
	why, known := x.held[o.Task]
	if known {
		return why
	}
	for _, th := range o.Task.Threads {
		if model.StateOf(th).Class == model.Zombie {
			continue
		}
		one := x.heldOf(th)
		if why = cmp.Or(why, one); one == "" {
			why = ""
			break
		}
	}
	x.held[o.Task] = why
	return why
}

func (x *Words) heldOf(th *kcdata.Thread) waitgraph.Reason {
	if th == nil || x.v.Waits == nil || x.v.Waits.Of[th] == nil {
		return ""
	}
	return heldBy[x.v.Waits.Of[th].Kind]
}

var heldBy = map[waits.Kind]waitgraph.Reason{waits.Stopped: waitgraph.Stopped, waits.Traced: waitgraph.Traced, waits.Frozen: waitgraph.Frozen}

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
func placeOf(c *waitgraph.Culprit) place {
	if c == nil || c.Wait == nil || c.Reason != waitgraph.InD || len(c.Victims)+len(c.Shared) > 0 {
		return place{}
	}
	return placeAt(c.Wait)
}

func placeAt(w *waits.Wait) (p place) {
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
