package screen

import (
	"fmt"
	"slices"

	"stackshot/internal/model"
	"stackshot/internal/show"
	"stackshot/internal/verdict"
	"stackshot/internal/waitgraph"
	"stackshot/internal/waits"
	"stackshot/kcdata"
)

// culprit is "sshfs [911] asleep, 3 behind: serves /mnt/backup (fuse.sshfs); longest ls [200]".
func (v *view) culprit(f verdict.Finding) entry {
	c := f.Culprit
	v.mark(c.Owner.Thread)
	v.tell(c.Victims)
	v.tell(c.Shared)
	o := c.Owner
	o.Whole = o.Whole && o.Thread == nil
	s := owner(&o) + v.threadName(o.Task, o.Thread)
	if why, ok := reasons[c.Reason]; !ok {
		s += " does not go on"
	} else if why != "" {
		s += " " + why
	}
	s += v.tracer(c.Reason, c.Owner.Thread)
	if t := o.Thread; t != nil && o.Relation == waits.Runs {
		if first := model.RealTime(t); first != "" {
			s += ", real time (" + first + ")"
		}
	}
	victims := verdict.Victims(c)
	longest := verdict.Longest(victims)
	a := model.Age{}
	if longest != nil {
		a = longest.Age
		if n := len(victims); v.words.Sure(c) {
			s += fmt.Sprintf(", %d behind", n)
		} else {
			s += fmt.Sprintf(", probably %d behind", n)
		}
	} else if c.Wait != nil {
		a = c.Wait.Age
	}
	if parts := v.why(f, longest); len(parts) > 0 {
		s += ": " + parts.Join("; ")
	}
	e := entry{line: row(age(a), s), threads: 1 + len(victims), pid: taskOf(victims)}
	if t := c.Owner.Task; t != nil {
		e.pid, e.more = t.ID, v.in(t)
	}
	return e
}

// why says what a culprit has, what it waits for itself, and who has waited longest for it.
func (v *view) why(f verdict.Finding, longest *waits.Wait) (parts show.Parts) {
	c := f.Culprit
	direct := verdict.Direct(c)
	has := ""
	if direct != nil {
		has = v.has(direct, f)
		parts.Add("%s", has)
	}
	if w := c.Wait; w != nil && (c.Reason == waitgraph.InD || c.Reason == waitgraph.Asleep) {
		t := v.of[w.Thread]
		if t == nil {
			t = &thread{Thread: w.Thread, task: w.Task, wait: w}
		}
		at := v.at(t)
		parts.If(at != "", "waits for %s", at)
	}
	switch {
	case longest == nil:
	case has == "":
		parts.Add("%s waits for %s", v.nameOf(direct), v.words.Short(direct))
		parts.If(longest != direct, "longest %s", v.nameOf(longest))
	default:
		parts.Add("longest %s", v.nameOf(longest))
	}
	return parts
}

// has says what f's culprit has that w's thread waits for; "" if it only owes it something.
func (v *view) has(w *waits.Wait, f verdict.Finding) string {
	o := &f.Culprit.Owner
	for i := range w.Owners {
		if x := &w.Owners[i]; x.Thread == o.Thread && x.Tid == o.Tid || x.Whole && x.Task == o.Task {
			switch x.Relation {
			case waits.Holds:
				return "holds " + v.words.Short(w) + v.asDo(f.With)
			case waits.Server, waits.Pager:
				return "serves " + v.words.Short(w)
			case waits.Reaps:
				return "has not reaped a zombie"
			case waits.Runs:
				return fmt.Sprintf("has CPU %d", w.Thread.Linux.CPU)
			}
		}
	}
	return ""
}

// asDo says how many others hold the same, and how many of them cannot act; "" if nobody does.
func (v *view) asDo(others []waits.Owner) string {
	n, held := len(others), 0
	if n == 0 {
		return ""
	}
	for i := range others {
		o := &others[i]
		if v.words.Held(o) == "" {
			continue
		}
		if held++; v.told[o.Thread] {
			continue // with its process
		}
		v.told[o.Thread] = true
		if o.Whole && o.Task != nil {
			for _, th := range o.Task.Threads {
				v.told[th] = true
			}
		}
	}
	s := fmt.Sprintf(", as %s %d more", verb(n, "does", "do"), n)
	if held > 0 {
		s += fmt.Sprintf(" (%d STOPPED)", held)
	}
	return s
}

// speaks is which owner of a convoy's lock its entry names: the first that cannot act, or else the first.
func (v *view) speaks(k *waitgraph.Convoy) int {
	return max(0, slices.IndexFunc(k.Owners, func(o waits.Owner) bool { return v.words.Held(&o) != "" }))
}

// tracer follows "STOPPED by its tracer": " gdb [17179]"; "" if the file does not have it.
func (v *view) tracer(why waitgraph.Reason, th *kcdata.Thread) string {
	if v.o.Verdict.Waits == nil || why != waitgraph.Traced {
		return ""
	}
	if w := v.o.Verdict.Waits.Of[th]; w != nil && len(w.Owners) > 0 {
		return " " + owner(&w.Owners[0])
	}
	return ""
}

// convoy is "postgres [990] (asleep), 50 behind: holds a kernel rwsem; longest backend [1000]".
func (v *view) convoy(k *waitgraph.Convoy) entry {
	v.tell(k.Waiters)
	n := len(k.Waiters)
	e := entry{threads: n, pid: taskOf(k.Waiters)}
	a, what := model.Age{}, v.words.ShortResource(k.Resource)
	if n > 0 {
		a = k.Waiters[0].Age
		if k.Waiters[0].File != nil { // which file it is
			what = v.words.Short(k.Waiters[0])
		}
	}
	who := "nobody is known to hold it"
	if q := verdict.Queued(k); q != "" {
		what, who = q, "nobody is known to hold them"
	}
	if tells := verdict.TellsHolders(k); tells != "" {
		who = "`" + tells + "` names the holders"
	}
	s := fmt.Sprintf("%s, %s: %s", what, who, count(n, "thread waits", "threads wait"))
	if len(k.Owners) > 0 {
		i := v.speaks(k)
		o, others := &k.Owners[i], slices.Delete(slices.Clone(k.Owners), i, i+1)
		v.mark(o.Thread)
		state := v.ownerState(o)
		if why := v.words.Held(o); why != "" {
			state = " " + reasons[why] + v.tracer(why, o.Thread)
		}
		probably := ""
		if !v.words.Sure(&waitgraph.Culprit{Owner: *o, Victims: k.Waiters}) {
			probably = "probably "
		}
		s = fmt.Sprintf("%s%s, %s%d behind: holds %s%s", owner(o), state, probably, n, what, v.asDo(others))
		if o.Task != nil {
			e.pid, e.more = o.Task.ID, v.in(o.Task)
		}
		if all := v.o.Verdict.Waits; all != nil && !o.Whole && v.words.Held(o) == "" && all.Of[o.Thread] != nil {
			s += "; waits for " + v.words.Short(all.Of[o.Thread])
		}
	}
	if n > 0 {
		s += "; longest " + v.nameOf(k.Waiters[0])
	}
	e.line = row(age(a), s)
	return e
}
