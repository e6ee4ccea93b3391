package screen

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"stackshot/internal/verdict"
	"stackshot/internal/waitgraph"
	"stackshot/internal/waits"
	"stackshot/kcdata"
)

// minD is the age from which a thread in D is listed.
const minD = uint64(1e9)

// found is an entry that is being made, with what it is sorted by.
type found struct {
	entry
	weight verdict.Weight
}

// hanging is who cannot go on. STUCK has deadlocks, those whom others wait for, and threads in D; STOPPED has threads that are stopped,
// traced or frozen and that others wait for. The section with the heaviest entry comes first.
func (v *view) hanging() []section {
	var stuck, stopped []found
	alone := map[*kcdata.Thread]bool{} // at their own pipe: leftover tells of those of one kind together
	for _, f := range v.words.Told(v.o.Only) {
		x := found{weight: f.Weight}
		switch {
		case x.weight.OwnEnd:
			alone[f.Deadlock.Cycle[0].Thread] = true
			continue
		case f.Deadlock != nil:
			x.entry = v.deadlock(f.Deadlock)
		case f.Culprit != nil && isAlone(f.Culprit):
			list := f.Together()
			if list == nil {
				list = []*waits.Wait{f.Culprit.Wait}
			}
			if x.entry = v.inD(list); x.threads == 0 {
				continue
			}
		case f.Culprit != nil:
			x.entry = v.culprit(f)
		default:
			x.entry = v.convoy(f.Convoy)
		}
		if f.Culprit != nil && halted(f.Culprit.Reason) || f.Convoy != nil && len(f.Convoy.Owners) > 0 && v.words.Held(&f.Convoy.Owners[v.speaks(f.Convoy)]) != "" {
			stopped = append(stopped, x)
		} else {
			stuck = append(stuck, x)
		}
	}
	stuck = append(stuck, v.leftover(alone)...)
	heaviest := func(a, b found) int { return cmp.Or(minorLast(a.entry, b.entry), a.weight.Compare(b.weight)) }
	slices.SortStableFunc(stuck, heaviest)
	out := []section{sectionOf("STUCK", stuck), sectionOf("STOPPED, and others wait for it", stopped)}
	if len(stuck)*len(stopped) > 0 && heaviest(stopped[0], stuck[0]) < 0 {
		slices.Reverse(out)
	}
	return out
}

func sectionOf(title string, list []found) section {
	out := section{title: title}
	for _, f := range list {
		out.entries = append(out.entries, f.entry)
	}
	return out
}

// halted reports whether a culprit is stopped, traced or frozen.
func halted(r waitgraph.Reason) bool {
	return r == waitgraph.Stopped || r == waitgraph.Traced || r == waitgraph.Frozen
}

// isAlone reports whether nobody waits for a culprit, which is in D.
func isAlone(c *waitgraph.Culprit) bool {
	return len(c.Victims)+len(c.Shared) == 0 && c.Owner.Thread != nil && c.Wait != nil
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
func (v *view) deadlock(d *waitgraph.Deadlock) entry {
	cycle, part := d.Cycle, max(len(d.Part), len(d.Cycle))
	v.tell(d.Part)
	v.tell(d.Behind)
	var names, things []string
	var last *kcdata.Task
	var tasks []*kcdata.Task
	for _, w := range cycle {
		v.mark(w.Thread)
		tasks = append(tasks, w.Task)
		if thing := v.words.Short(w); !slices.Contains(things, thing) && len(things) < 2 {
			things = append(things, thing)
		}
		if len(names) < examples {
			name := v.nameOf(w)
			if w.Task == last {
				name = fmt.Sprintf("tid %d", w.Thread.ID) + v.threadName(w.Task, w.Thread)
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
	each := "each waits for the next"
	if part == 1 {
		each = "it waits for itself"
	}
	s += "; " + each + ": " + strings.Join(things, ", ")
	return entry{line: row(age(verdict.Latest(cycle)), s), more: v.in(tasks...), threads: part + len(d.Behind), pid: taskOf(cycle)}
}
