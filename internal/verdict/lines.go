package verdict

import (
	"cmp"
	"fmt"
	"slices"

	"stackshot/internal/model"
	"stackshot/internal/show"
	"stackshot/internal/waits"
	"stackshot/kcdata"
)

// Line is threads that have waited for long for locks, or for room in pipes, and nobody is to blame, for all that
// is known: whoever has them works, or waits for the next job of a pool.
type Line struct {
	Owner *waits.Owner  // who has them; nil: not known, and the waits are of one process
	Waits []*waits.Wait // longest first
	Turn  bool          // they wait for their turn in a pool
}

// Lines are those in which one of only's threads stands, of these alone, the longest line first and those of pools
// last; nil: all.
func (x *Words) Lines(only map[*kcdata.Thread]bool) []Line {
	var out []Line
	at := map[string]int{} // of one holder however many locks it has; else of one process and kind of lock
	add := func(o *waits.Owner, w *waits.Wait, turn bool) {
		if only != nil && !only[w.Thread] {
			return
		}
		k := fmt.Sprint(turn, w.Kind, w.Task.ID)
		if o != nil {
			k = fmt.Sprint(turn, w.Kind, Owner(o))
		}
		i, there := at[k]
		if !there {
			i = len(out)
			at[k], out = i, append(out, Line{Owner: o, Turn: turn})
		}
		out[i].Waits = append(out[i].Waits, w)
	}
	for _, p := range x.v.Pools {
		var o *waits.Owner // nobody is known to hold it
		if len(p.Owners) > 0 {
			o = &p.Owners[0]
		}
		for _, w := range p.Waiters {
			add(o, w, true)
		}
	}
	for _, w := range x.v.Starved {
		if w.Kind == waits.CPU {
			continue
		}
		var by *waits.Owner
		for i := range w.Owners {
			o := &w.Owners[i]
			if o.Relation != waits.Holds && o.Relation != waits.OtherEnd {
				continue
			}
			if by = o; !x.waitsForEnd(o) { // flock(1) waits for the job, which has the lock, too
				break
			}
		}
		add(by, w, false)
	}
	for i := range out {
		slices.SortStableFunc(out[i].Waits, func(a, b *waits.Wait) int { return model.LongestFirst(a.Age, b.Age) })
	}
	slices.SortStableFunc(out, func(a, b Line) int {
		last := map[bool]int{true: 1}
		return cmp.Or(last[a.Turn]-last[b.Turn], cmp.Compare(len(b.Waits), len(a.Waits)), model.LongestFirst(a.Waits[0].Age, b.Waits[0].Age))
	})
	return out
}

// Waiting counts the threads of some lines.
func Waiting(lines []Line) (n int) {
	for _, l := range lines {
		n += len(l.Waits)
	}
	return n
}

// waitsForEnd reports whether o waits for a child.
func (x *Words) waitsForEnd(o *waits.Owner) bool {
	if o.Thread == nil || x.v.Waits == nil {
		return false
	}
	w := x.v.Waits.Of[o.Thread]
	return w != nil && waitsForEnd(w)
}

// Behind says behind whom the lines stand, at most most of them, as owner names these and thing what they have:
// "20 behind cron [12] (a file lock), 3 more".
func Behind(lines []Line, most int, owner func(*waits.Owner) string, thing func(*waits.Wait) string) string {
	var parts show.Parts
	shown := lines[:min(len(lines), most)]
	for _, l := range shown {
		if l.Owner == nil {
			parts.Add("%d of %s at %s", len(l.Waits), owner(&waits.Owner{Task: l.Waits[0].Task, Thread: l.Waits[0].Task.Threads[0], Whole: true}), thing(l.Waits[0]))
		} else {
			probably := ""
			if l.Waits[0].Confidence == waits.Likely {
				probably = "probably "
			}
			parts.Add("%d %sbehind %s (%s)", len(l.Waits), probably, owner(l.Owner), thing(l.Waits[0]))
		}
	}
	more := Waiting(lines[len(shown):])
	parts.If(more > 0, "%d more", more)
	return parts.Join(", ")
}
