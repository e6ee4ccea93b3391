package screen

import (
	"fmt"

	"stackshot/internal/model"
	"stackshot/internal/show"
	"stackshot/internal/verdict"
	"stackshot/internal/waitgraph"
	"stackshot/internal/waits"
)

// culprit is "sshfs [911] asleep, 3 behind: serves /mnt/backup (fuse.sshfs); longest ls [200]".
func (v *view) culprit(c *waitgraph.Culprit) entry {
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
	if c.Reason == waitgraph.Traced && c.Wait != nil && len(c.Wait.Owners) > 0 {
		s += " " + owner(&c.Wait.Owners[0])
	}
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
	if parts := v.why(c, longest); len(parts) > 0 {
		s += ": " + parts.Join("; ")
	}
	e := entry{line: row(age(a), s), threads: 1 + len(victims), pid: taskOf(victims)}
	if t := c.Owner.Task; t != nil {
		e.pid, e.more = t.ID, v.in(t)
	}
	return e
}

// why says what a culprit has, what it waits for itself, and who has waited longest for it.
func (v *view) why(c *waitgraph.Culprit, longest *waits.Wait) (parts show.Parts) {
	direct := verdict.Direct(c)
	has := ""
	if direct != nil {
		has = v.has(direct, &c.Owner)
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

// has says what o has that w's thread waits for; "" if it only owes it something.
func (v *view) has(w *waits.Wait, o *waits.Owner) string {
	for i := range w.Owners {
		if x := &w.Owners[i]; x.Thread == o.Thread && x.Tid == o.Tid || x.Whole && x.Task == o.Task {
			switch x.Relation {
			case waits.Holds:
				return "holds " + v.words.Short(w) + v.asDo(w.Owners, o)
			case waits.Server, waits.Pager:
				return "serves " + v.words.Short(w)
			case waits.Runs:
				return fmt.Sprintf("has CPU %d", w.Thread.Linux.CPU)
			}
		}
	}
	return ""
}

// asDo says how many others than o hold the same, and how many of them cannot act; "" if nobody does.
func (v *view) asDo(owners []waits.Owner, o *waits.Owner) string {
	n, held := len(owners)-1, 0
	if n <= 0 {
		return ""
	}
	for i := range owners {
		if x := &owners[i]; (x.Thread != o.Thread || x.Tid != o.Tid) && v.words.Held(x) != "" {
			held++
		}
	}
	s := fmt.Sprintf(", as %s %d more", verb(n, "does", "do"), n)
	if held > 0 {
		s += fmt.Sprintf(" (%d STOPPED)", held)
	}
	return s
}

// speaks is the owner of a convoy's lock that its entry names: the first that cannot act, or else the first.
func (v *view) speaks(k *waitgraph.Convoy) *waits.Owner {
	const most = 256
	for i := range k.Owners[:min(len(k.Owners), most)] {
		if v.words.Held(&k.Owners[i]) != "" {
			return &k.Owners[i]
		}
	}
	if len(k.Owners) == 0 {
		return &waits.Owner{}
	}
	return &k.Owners[0]
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
	s := fmt.Sprintf("%s, nobody is known to hold it: %d wait", what, n)
	if len(k.Owners) > 0 {
		o := v.speaks(k)
		v.mark(o.Thread)
		state := v.ownerState(o)
		if why := v.words.Held(o); why != "" {
			state = " " + reasons[why]
		}
		probably := ""
		if !v.words.Sure(&waitgraph.Culprit{Owner: *o, Victims: k.Waiters}) {
			probably = "probably "
		}
		s = fmt.Sprintf("%s%s, %s%d behind: holds %s%s", owner(o), state, probably, n, what, v.asDo(k.Owners, o))
		if o.Task != nil {
			e.pid, e.more = o.Task.ID, v.in(o.Task)
		}
	}
	if n > 0 {
		s += "; longest " + v.nameOf(k.Waiters[0])
	}
	e.line = row(age(a), s)
	return e
}
