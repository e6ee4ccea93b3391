package verdict

import (
	"cmp"
	"fmt"
	"strings"

	"stackshot/internal/account"
	"stackshot/internal/model"
	"stackshot/internal/show"
	"stackshot/internal/waitgraph"
	"stackshot/internal/waits"
)

// maxCycle is how many threads of a cycle a sentence names.
const maxCycle = 3

// Title is the heading of a finding.
func (x *Words) Title(f Finding) string {
	switch {
	case f.Deadlock != nil:
		return deadlockOf(f.Deadlock)
	case f.Convoy != nil:
		c := f.Convoy
		s := show.Count(len(c.Waiters), "thread") + " at " + x.lock(c)
		if len(c.Owners) == 0 {
			return s + nobodyHolds
		}
		return "Convoy of " + s
	case len(f.Others) > 0:
		return show.Count(1+len(f.Others), "thread") + " wait in D for " + x.Place(f.Culprit.Wait)
	case len(f.Culprit.Victims) == 0:
		return Culprit(f.Culprit) + " does not go on"
	}
	probably := ""
	if !x.Sure(f.Culprit) {
		probably = " probably"
	}
	return Culprit(f.Culprit) + probably + " keeps " + show.Count(len(f.Culprit.Victims), "thread") + " waiting"
}

// deadlockOf says how sure a deadlock is and how many threads are part of it.
func deadlockOf(d *waitgraph.Deadlock) string {
	s := "Deadlock"
	if d.Confidence != waits.Sure {
		s = "Probably a deadlock"
	}
	return s + " of " + show.Count(max(len(d.Part), len(d.Cycle)), "thread")
}

// Sentence is one finding in one or two sentences.
func (x *Words) Sentence(f Finding) string {
	switch {
	case f.Deadlock != nil:
		return x.deadlock(f.Deadlock)
	case len(f.Others) > 0:
		return x.together(f)
	case f.Culprit != nil:
		return x.culprit(f.Culprit)
	}
	return x.convoy(f.Convoy)
}

// Culprit names a culprit: the thread that tells why its process does not go on.
func Culprit(c *waitgraph.Culprit) string { return names(nil).culprit(c) }

func (n names) culprit(c *waitgraph.Culprit) string {
	o := c.Owner
	o.Whole = o.Whole && o.Thread == nil
	return n.owner(&o, &waits.Wait{})
}

func (x *Words) deadlock(d *waitgraph.Deadlock) string {
	n := names{}
	var edges []string
	for i, w := range d.Cycle[:min(len(d.Cycle), maxCycle)] {
		next := d.Cycle[(i+1)%len(d.Cycle)]
		who := n.thread(w.Task, w.Thread)
		edges = append(edges, who+" "+n.clause(w, ownersIn(w, next), x.redacted))
	}
	s := deadlockOf(d)
	if more := len(d.Cycle) - len(edges); more > 0 {
		s += ": " + strings.Join(edges, ", ") + fmt.Sprintf(", and so on through %s, back to the first", show.Count(more, "more thread"))
	} else {
		s += ": " + sentenceList(edges)
	}
	s += "."
	if age, ok := latest(d.Cycle); ok {
		s += " It has lasted" + account.Age(age) + "."
	}
	if len(d.Behind) > 0 {
		s += fmt.Sprintf(" %s behind %s.", waiting(len(d.Behind), ""), plural(len(d.Part) == 1, "it", "them"))
	}
	return s
}

// sentenceList joins clauses that have commas of their own.
func sentenceList(list []string) string {
	if len(list) < 2 {
		return strings.Join(list, "")
	}
	return strings.Join(list[:len(list)-1], ", ") + ", and " + list[len(list)-1]
}

// ownersIn are the owners of w that are next's thread or its process; all, if none is.
func ownersIn(w, next *waits.Wait) []waits.Owner {
	for i := range w.Owners {
		if o := &w.Owners[i]; isProcess(o) && o.Task == next.Task || !isProcess(o) && o.Thread == next.Thread {
			return w.Owners[i : i+1]
		}
	}
	return w.Owners
}

// Latest is the age of the wait that began last, as far as it is known.
func Latest(list []*waits.Wait) model.Age {
	if age, ok := latest(list); ok {
		return age
	}
	return model.Age{}
}

// latest is the age of the wait that began last: the cycle is not older. ok is false if an
// age is not known.
func latest(list []*waits.Wait) (age model.Age, ok bool) {
	for i, w := range list {
		if !w.Age.Known {
			return age, false
		}
		if i == 0 || w.Age.Ns < age.Ns {
			age = w.Age
		}
	}
	return age, len(list) > 0
}

// waiting says "1 thread waits", "2 threads wait", with an adverb.
func waiting(n int, adverb string) string {
	if adverb != "" {
		adverb += " "
	}
	return show.Count(n, "thread") + " " + adverb + plural(n == 1, "waits", "wait")
}

// culprit says who keeps others waiting, why, and who has waited longest.
func (x *Words) culprit(c *waitgraph.Culprit) string {
	n := names{}
	who := n.culprit(c)
	if len(c.Victims) == 0 {
		return fmt.Sprintf("%s%s.", who, x.why(n, c))
	}
	adverb := ""
	if !x.Sure(c) {
		adverb = "probably"
	}
	first := Longest(c.Victims)
	s := fmt.Sprintf("%s for %s", waiting(len(c.Victims), adverb), who)
	if c.Owner.Thread != nil { // else the name says why
		s += ", which" + x.why(n, c)
	}
	s += "."
	which := "The longest, %s,"
	switch {
	case len(c.Victims) == 1:
		which = "It is %s, which"
	case first != c.Victims[0]:
		which = "One of them, %s,"
	}
	return s + " " + fmt.Sprintf(which, n.thread(first.Task, first.Thread)) + " " + n.clause(first, first.Owners, x.redacted) + since(first.Age) + "."
}

// together says where threads in D wait, and who has waited longest.
func (x *Words) together(f Finding) string {
	n := names{}
	owners := []waits.Owner{f.Culprit.Owner}
	for _, c := range f.Others {
		owners = append(owners, c.Owner)
	}
	return fmt.Sprintf("%s are in uninterruptible sleep (D) and wait for %s: %s.%s",
		show.Count(len(owners), "thread"), x.Place(f.Culprit.Wait), n.list(&waits.Wait{}, owners), n.longest(f.Culprit.Wait))
}

// Place is what several threads wait for at the same place.
func (x *Words) Place(w *waits.Wait) string {
	y := *w
	if y.Kind == waits.RWSemRead || y.Kind == waits.RWSemWrite {
		y.Kind = waits.RWSem // some may be readers, some writers
	}
	s := x.what(&y)
	if rest, ok := strings.CutPrefix(s, "its "); ok {
		s = "their " + rest
	}
	if placeAt(w).stack != "" {
		s += ", in " + short(w.Function)
	}
	return s
}

// longest is a sentence on who has waited longest; "" if that is not known.
func (n names) longest(w *waits.Wait) string {
	if age := account.Age(w.Age); age != "" {
		return " The longest, " + n.thread(w.Task, w.Thread) + ", has waited" + age + "."
	}
	return ""
}

// since follows a clause and says for how long.
func since(a model.Age) string {
	if age := account.Age(a); age != "" {
		return "," + age
	}
	return ""
}

// why is the culprit's reason, with a space before it.
func (x *Words) why(n names, c *waitgraph.Culprit) string {
	s := " " + reasons[c.Reason]
	if reasons[c.Reason] == "" {
		s = " does not go on (" + show.Clean(string(c.Reason)) + ")"
	}
	w := c.Wait
	if w == nil {
		return s
	}
	if age := account.Age(w.Age); age != "" {
		s = strings.Replace(s, " is ", " has been ", 1)
		s = strings.Replace(s, " waits ", " has waited ", 1) + age
	}
	if c.Reason == waitgraph.InD || c.Reason == waitgraph.Asleep {
		s += " and " + n.clause(w, w.Owners, x.redacted)
	}
	return s
}

// Sure reports whether the file is of one instant and a wait that leads straight to the
// culprit is sure.
func (x *Words) Sure(c *waitgraph.Culprit) bool {
	if x.v.Waits != nil && !x.v.Waits.OneInstant {
		return false
	}
	for _, w := range Victims(c) {
		if w.Confidence == waits.Sure && owned(w, &c.Owner) {
			return true
		}
	}
	return false
}

// maxPartners is how many owners of a convoy's lock are asked whether they can act.
const maxPartners = 16

// nobodyHolds follows a lock of which nobody is known to have it.
const nobodyHolds = ", which nobody is known to hold"

// queued are locks of which it is not known which ones they are.
var queued = map[waits.Kind]string{waits.JavaMonitor: "Java monitors", waits.ParkingLot: "locks of Rust's parking_lot"}

// Queued names the locks for which the threads of a process wait, if it is not known which ones these are; "": it is.
func Queued(c *waitgraph.Convoy) string {
	if !c.Resource.Kind.IsQueued() || len(c.Waiters) == 0 {
		return ""
	}
	task := c.Waiters[0].Task
	return queued[c.Resource.Kind] + " of " + process(&waits.Owner{Task: task})
}

// TellsHolders is the command that names who holds the locks of a convoy; "": there is none.
func TellsHolders(c *waitgraph.Convoy) string {
	if c.Resource.Kind != waits.JavaMonitor {
		return ""
	}
	return fmt.Sprintf("jstack %d", c.Resource.Task)
}

// lock names what c waits for.
func (x *Words) lock(c *waitgraph.Convoy) string { return cmp.Or(Queued(c), x.Resource(c.Resource)) }

func (x *Words) convoy(c *waitgraph.Convoy) string {
	n := names{}
	s := waiting(len(c.Waiters), "") + " for " + x.lock(c)
	if len(c.Owners) == 0 {
		s += nobodyHolds
		if tells := TellsHolders(c); tells != "" {
			s += "; `" + tells + "` names the holders"
		}
	} else {
		s = "Convoy: " + s + " that " + n.list(&waits.Wait{}, c.Owners)
		if !x.Sure(&waitgraph.Culprit{Owner: c.Owners[0], Victims: c.Waiters}) {
			s += " probably"
		}
		s += plural(len(c.Owners) == 1, " holds", " hold")
	}
	for i := range c.Owners[:min(len(c.Owners), maxPartners)] {
		switch why := x.Held(&c.Owners[i]); {
		case why == "":
		case len(c.Owners) == 1:
			s += ", which " + reasons[why]
		default:
			s += "; " + n.owner(&c.Owners[i], &waits.Wait{}) + " " + reasons[why]
		}
	}
	s += "."
	if len(c.Waiters) > 0 {
		s += n.longest(c.Waiters[0])
	}
	return s
}
