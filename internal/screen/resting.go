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

// leftover are the threads in D, those that sleep where nothing should rest, of which no
// finding of the verdict tells, and those at their own pipe (own). Those at the same place are one entry.
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
		x := v.group(groups[key])
		x.weight.OwnEnd = own[groups[key][0].Thread]
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
	// An age that is not known may be of a moment: it is said, and does not make the machine ill.
	e := entry{line: row(age(first.age), s), more: v.in(tasks...), threads: len(list), pid: first.task.ID, minor: !first.age.Known}
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

// isStuck reports whether t has waited for long where nothing should rest.
func (v *view) isStuck(t *thread) bool {
	switch t.state.Class {
	case model.Blocked:
		return (!t.age.Known || t.age.Ns >= minD) && (t.wait == nil || t.wait.Kind != waits.AtRest)
	case model.Sleeping:
		return t.age.Known && t.age.Ns >= minD && t.wait != nil && !t.wait.Timed && v.isBusyPlace(t.wait)
	}
	return false
}

// isBusyPlace reports whether w is for something that others give up soon: a lock, or room in a
// pipe. A pipe whose reader waits for a person is at rest.
func (v *view) isBusyPlace(w *waits.Wait) bool {
	return w.Kind.IsLock() || w.Kind == waits.Pipe && v.isFullPipe(w)
}

func (v *view) isFullPipe(w *waits.Wait) bool {
	if w.File == nil || w.File.File == nil || w.File.Says != "" || w.File.File.Flags&(kcdata.FileToWrite|kcdata.FileToRead) != kcdata.FileToWrite {
		return false
	}
	for i := range w.Owners {
		if w.Owners[i].Task != nil && v.waitsForAPerson(w.Owners[i].Task) {
			return false
		}
	}
	return true
}

// waitsForAPerson reports whether a thread of t waits at a terminal.
func (v *view) waitsForAPerson(t *kcdata.Task) bool {
	for _, th := range t.Threads {
		if x := v.o.Verdict.Waits.Of[th]; x != nil && x.Kind == waits.Terminal || hasTerminal(th) {
			return true
		}
	}
	return false
}

func hasTerminal(t *kcdata.Thread) bool {
	for i := range t.Files {
		if k := t.Files[i].Kind; k == kcdata.FileTerminal || k == kcdata.FilePTMaster {
			return true
		}
	}
	return false
}

// atRest counts the threads of which no entry tells, by what they do. Nobody in D is at rest.
func (v *view) atRest() string {
	var sleeping, kernel, young, stopped, zombies, unknown int
	var traced int
	var tracees show.Parts
	seen := map[string]bool{}
	for _, t := range v.threads {
		switch {
		case t.state.Class == model.CPUIdle:
			// a CPU, which is no thread of anybody: idleCPUs counts those that had nothing to run
		case v.told[t.Thread] || t.state.Class.WantsCPU():
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
