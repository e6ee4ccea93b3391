package screen

import (
	"cmp"
	"fmt"
	"slices"

	"stackshot/internal/model"
	"stackshot/internal/show"
	"stackshot/internal/verdict"
	"stackshot/internal/waits"
	"stackshot/kcdata"
)

// leftover are the threads in D of which no finding of the verdict tells, and those at their own
// pipe (own). Those at the same place are one entry.
func (v *view) leftover(own map[*kcdata.Thread]bool) (out []found) {
	groups := map[string][]*thread{}
	var order []string
	for _, t := range v.threads {
		if v.told[t.Thread] || !v.isStuck(t) && !own[t.Thread] {
			continue
		}
		key := v.stateWord(t) + "\x00" + v.at(t)
		if groups[key] == nil {
			order = append(order, key)
		}
		groups[key] = append(groups[key], t)
	}
	for _, key := range order {
		list := groups[key]
		x := v.group(list)
		x.weight.OwnEnd = own[list[0].Thread]
		x.minor = !x.weight.OwnEnd && !slices.ContainsFunc(list, v.isUnjudged)
		out = append(out, x)
	}
	return out
}

// group is one entry: "40 x bash [2000] D: /srv/nfs (nfs4), in folio_wait_bit_common".
func (v *view) group(list []*thread) found {
	longestFirst(list)
	first := list[0]
	at := v.at(first)
	if slices.ContainsFunc(list, func(t *thread) bool { return v.at(t) != at }) { // in several functions
		at = v.waitsFor(first).Join(", ")
	}
	for _, t := range list {
		v.mark(t.Thread)
	}
	s := crowd(list) + " " + v.stateWord(first)
	if at != "" {
		s += ": " + at
	}
	var tasks []*kcdata.Task
	for _, t := range list {
		tasks = append(tasks, t.task)
	}
	e := entry{line: row(age(first.age), s), more: v.in(tasks...), threads: len(list), pid: first.task.ID}
	asleep := first.state.Class != model.Blocked
	return found{e, verdict.Weight{Threads: len(list), Unsure: asleep, Asleep: asleep, Age: first.age}}
}

// inD is the entry of threads in D, of those that are looked at.
func (v *view) inD(list []*waits.Wait) entry {
	var threads []*thread
	for _, w := range list {
		if t := v.of[w.Thread]; t != nil {
			threads = append(threads, t)
		}
	}
	if len(threads) == 0 {
		return entry{}
	}
	return v.group(threads).entry
}

func (v *view) stateWord(t *thread) string {
	if t.state.Class == model.Blocked {
		return "D"
	}
	return "asleep"
}

// isStuck reports whether t has been in D for long where nothing should rest.
func (v *view) isStuck(t *thread) bool {
	return t.state.Class == model.Blocked && (!t.age.Known || t.age.Ns >= minD) && (t.wait == nil || t.wait.Kind != waits.AtRest)
}

// isUnjudged reports whether t, which is in D and of which no finding tells, may be stuck all the same, since
// the file says too little for a verdict. Else somebody goes on who can end its wait: that is said,
// and does not make the machine ill, nor does an age that is not known, which may be of a moment.
func (v *view) isUnjudged(t *thread) bool {
	return t.age.Known && (!v.words.Knows() || t.wait == nil || t.wait.When == waits.NotAtOne)
}

// inLine are the lines of threads that sleep and of which no entry tells.
func (v *view) inLine() []verdict.Line {
	untold := map[*kcdata.Thread]bool{}
	for _, t := range v.threads {
		if !v.told[t.Thread] && t.state.Class == model.Sleeping {
			untold[t.Thread] = true
		}
	}
	return v.words.Lines(untold)
}

// lineWords says how many are in line, for how long at most, and behind whom; "": nobody is.
func (v *view) lineWords(lines []verdict.Line) string {
	if len(lines) == 0 {
		return ""
	}
	longest := slices.MinFunc(lines, func(a, b verdict.Line) int { return model.LongestFirst(a.Waits[0].Age, b.Waits[0].Age) })
	return fmt.Sprintf("%d in line for up to %s: %s", verdict.Waiting(lines), age(longest.Waits[0].Age), verdict.Behind(lines, 2, owner, v.kind))
}

// atRest counts the threads of which neither an entry nor the lines tell, by what they do. Nobody in D is at
// rest.
func (v *view) atRest(lines []verdict.Line) string {
	var sleeping, kernel, young, stopped, zombies, unknown int
	var traced int
	var tracees show.Parts
	seen, inLine := map[string]bool{}, map[*kcdata.Thread]bool{}
	for _, l := range lines {
		for _, w := range l.Waits {
			inLine[w.Thread] = true
		}
	}
	for _, t := range v.threads {
		switch {
		case t.state.Class == model.CPUIdle:
			// a CPU, which is no thread of anybody: idleCPUs counts those that had nothing to run
		case v.told[t.Thread] || inLine[t.Thread] || t.state.Class.WantsCPU():
		case model.IsIdleKernel(t.task, t.Thread, t.state.Class), t.wait != nil && t.wait.Kind == waits.AtRest:
			kernel++
		case t.state.Class == model.Blocked:
			young++
		case t.wait != nil && t.wait.Kind == waits.Traced && len(t.wait.Owners) > 0:
			traced++
			if who := fmt.Sprintf("%s [%d] by %s", comm(t.task.Name), t.task.ID, owner(&t.wait.Owners[0])); !seen[who] {
				seen[who] = true
				tracees.Add("%s", who)
			}
		case t.state.Class == model.Held:
			stopped++
		case t.state.Class == model.Zombie:
			zombies++
		case t.state.Class == model.Unknown:
			unknown++
		default:
			sleeping++
		}
	}
	var parts show.Parts
	parts.If(sleeping > 0, "%d asleep", sleeping)
	parts.If(kernel > 0, "%s", count(kernel, "idle kernel thread", "idle kernel threads"))
	parts.If(stopped > 0, "%d stopped", stopped)
	n := min(len(tracees), examples)
	parts.If(traced > 0, "%d traced: %s%s", traced, tracees[:n].Join(", "), andMore(len(tracees)-n))
	parts.If(zombies > 0, "%s", count(zombies, "zombie", "zombies"))
	parts.If(unknown > 0, "%d in an unknown state", unknown)
	if n, of := v.idleCPUs(), len(v.s.CPUs); n > 0 {
		parts.Add("%d of %s idle", n, show.Count(of, "CPU"))
	}
	waiting := ""
	if young > 0 {
		waiting = fmt.Sprintf("%d in D for less than 1 s; ", young)
	}
	return waiting + "at rest: " + cmp.Or(parts.Join(", "), "nobody")
}

// kind is what kind of thing w is for: "a file lock", "room in a pipe".
func (v *view) kind(w *waits.Wait) string {
	if w.Kind.IsLock() {
		return verdict.Kind(w.Kind)
	}
	return v.words.Short(w)
}
