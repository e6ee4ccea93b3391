package hang

import (
	"cmp"
	"fmt"
	"slices"

	"stackshot/internal/account"
	"stackshot/internal/model"
	"stackshot/internal/report"
	"stackshot/internal/show"
	"stackshot/internal/verdict"
	"stackshot/internal/waitgraph"
	"stackshot/internal/waits"
	"stackshot/kcdata"
)

// total is how many threads wait for one kind of thing.
type total struct {
	kind    waits.Kind
	threads int
	longest *waits.Wait
}

// totals count the waits of the threads that are shown, by kind, the most numerous first.
func totals(v *waitgraph.Verdict, o *Options) []total {
	byKind := map[waits.Kind]*total{}
	for _, w := range v.Waits.All {
		if !o.shown(w.Task, w.Thread) {
			continue
		}
		t := byKind[w.Kind]
		if t == nil {
			t = &total{kind: w.Kind, longest: w}
			byKind[w.Kind] = t
		}
		t.threads++
		if model.LongestFirst(w.Age, t.longest.Age) < 0 {
			t.longest = w
		}
	}
	out := make([]total, 0, len(byKind))
	for _, t := range byKind {
		out = append(out, *t)
	}
	slices.SortFunc(out, func(a, b total) int {
		return cmp.Or(cmp.Compare(b.threads, a.threads), cmp.Compare(a.kind, b.kind))
	})
	return out
}

// unconcerned says what the threads do that were asked for and that no finding concerns, each in a line.
func (t *text) unconcerned() {
	if t.o.Only == nil {
		return
	}
	concerned, processes := map[*kcdata.Thread]bool{}, map[*kcdata.Task]bool{}
	for _, f := range t.findings {
		threads, whole := f.Parts()
		for _, th := range threads {
			concerned[th] = true
		}
		for _, task := range whole {
			processes[task] = true
		}
	}
	type asked struct {
		task *kcdata.Task
		*kcdata.Thread
	}
	var list []asked
	shown, n := map[*kcdata.Thread]bool{}, 0
	for _, task := range t.s.Tasks {
		for _, th := range task.Threads {
			if !t.o.shown(task, th) || concerned[th] || processes[task] {
				continue
			}
			if n++; n <= maxAsked {
				list = append(list, asked{task, th})
				shown[th] = true
			}
		}
	}
	if n == 0 {
		return
	}
	t.Line("")
	t.colored(show.Bold, func() { t.Line("== ASKED FOR, and no finding concerns them: %s", show.Count(n, "thread")) })
	doing := report.Doing(t.s, t.v, shown)
	for _, a := range list {
		s := verdict.Thread(a.task, a.Thread) + ": " + doing[a.Thread]
		if w := t.v.Waits.Of[a.Thread]; w != nil && w.Kind != waits.Other && !verdict.Tells(w) {
			s += ", " + t.words.Thing(w)
		}
		t.indented(1, s)
	}
	t.left(1, n-maxAsked, "more thread", "")
}

// totals writes the table of kinds.
func (t *text) totals() {
	all := totals(t.v, t.o)
	n := 0
	for i := range all {
		n += all[i].threads
	}
	t.Line("")
	t.colored(show.Bold, func() { t.Line("== WAITING: %s", show.Count(n, "thread")) })
	t.busy()
	turns, others := turnsOf(t.words, t.o)
	t.inLine(others, "%s in line, and nothing shows that whoever is before them hangs: %s.")
	t.inLine(turns, "%s for a turn, as in a pool whose leader has the lock and waits for the next job: %s. If these are pools, nothing hangs by that.")
	for i := range all {
		w := all[i].longest
		line := fmt.Sprintf("%7d  %s", all[i].threads, verdict.Kind(all[i].kind))
		if age := account.Age(w.Age); age != "" {
			line += "; the longest," + age + ": " + verdict.Thread(w.Task, w.Thread)
		}
		t.Line("%s", line)
	}
}

// notShown ends the text: how many threads were left out.
func (t *text) notShown() {
	if n := notAsked(t.s, *t.o); n > 0 {
		t.Line("")
		t.Words("", "%d of %s not asked for: what concerns only them is not shown", n, show.Count(t.s.ThreadCount(), "thread"))
	}
}

// notAsked counts the threads that Options.Only leaves out.
func notAsked(s *kcdata.Snapshot, o Options) int {
	if o.Only == nil {
		return 0
	}
	return s.ThreadCount() - len(o.Only)
}

// starved are those that are shown.
func starved(v *waitgraph.Verdict, o *Options) []*waits.Wait {
	return slices.DeleteFunc(slices.Clone(v.Starved), func(w *waits.Wait) bool { return !o.shown(w.Task, w.Thread) })
}

// busy says who has waited for a CPU, and nobody is to blame for it.
func (t *text) busy() {
	long := slices.DeleteFunc(starved(t.v, t.o), func(w *waits.Wait) bool { return w.Kind != waits.CPU })
	if len(long) > 0 {
		t.Words("", "%s for a CPU though nobody keeps it from them: the machine is full. The longest%s: %s.", haveWaited(len(long)), account.Age(long[0].Age), verdict.Thread(long[0].Task, long[0].Thread))
	}
}

// maxLines bounds the lines that a sentence names.
const maxLines = 4

// inLine says behind whom threads have waited for long, and nobody is to blame.
func (t *text) inLine(lines []verdict.Line, format string) {
	if n := verdict.Waiting(lines); n > 0 {
		t.Words("", format, haveWaited(n), verdict.Behind(lines, maxLines, verdict.Owner, t.words.Short))
	}
}

// turnsOf are the lines of the threads that are shown: those of pools, and the others.
func turnsOf(x *verdict.Words, o *Options) (turns, others []verdict.Line) {
	for _, l := range x.Lines(o.Only) {
		if l.Turn {
			turns = append(turns, l)
		} else {
			others = append(others, l)
		}
	}
	return turns, others
}

// limits says what this file cannot tell (H4).
func (t *text) limits() {
	limits := limitsOf(t.v, t.o)
	if len(limits) == 0 {
		return
	}
	t.Line("")
	t.colored(show.Bold, func() { t.Line("== WHAT THIS FILE CANNOT TELL") })
	for _, s := range limits[:min(len(limits), maxLimits)] {
		t.Words("  ", "%s", s)
	}
	t.left(1, len(limits)-maxLimits, "more limit", "")
}

// maxFiles bounds the files that a sentence names, maxFile the words for one, in cells.
const (
	maxFiles = 4
	maxFile  = 200
)

// limitsOf are the sentences on what a file cannot tell, clean.
func limitsOf(v *waitgraph.Verdict, o *Options) []string {
	out := []string{}
	for _, s := range v.Waits.Limits {
		out = append(out, show.Clean(s))
	}
	if n := len(o.NotSymbolized); n > 0 {
		var files show.Parts
		for _, s := range o.NotSymbolized[:min(n, maxFiles)] {
			files.Add("%s", show.Fit(show.Clean(s), maxFile))
		}
		files.If(n > maxFiles, "and %d more", n-maxFiles)
		out = append(out, "what threads wait for whose functions have no names: files not symbolized: "+files.Join("; "))
	}
	if v.Unaged > 0 {
		out = append(out, fmt.Sprintf("how long %s: such waits make no chain and no convoy", haveWaited(v.Unaged)))
	}
	return out
}

func haveWaited(n int) string {
	if n == 1 {
		return "1 thread has waited"
	}
	return fmt.Sprintf("%d threads have waited", n)
}

// stacks writes those of the threads that the findings name.
func (t *text) stacks() error {
	matter, left := t.matter()
	if len(matter) == 0 {
		return nil
	}
	t.Line("")
	t.colored(show.Bold, func() { t.Line("== STACKS of the threads that matter: %d", len(matter)) })
	cut := report.Stacks(t.w, t.s, matter, report.Options{
		Verdict: t.v, MaxBytes: t.o.MaxBytes, Width: t.o.Width, Color: t.o.Color,
	})
	t.left(1, left, "more thread", ", whose stacks the report has")
	return cut
}

// matter are the threads whose stacks are shown, and how many more the findings name: the
// cycles, the culprits, who has waited longest for each, and who holds up a convoy.
func (t *text) matter() (threads map[*kcdata.Thread]bool, left int) {
	threads = map[*kcdata.Thread]bool{}
	over := map[*kcdata.Thread]bool{}
	add := func(th *kcdata.Thread) {
		switch {
		case th == nil || threads[th]:
		case len(threads) < maxStacks:
			threads[th] = true
		default:
			over[th] = true
		}
	}
	first := func(list []*waits.Wait) {
		if len(list) > 0 {
			add(list[0].Thread)
		}
	}
	for _, f := range t.findings {
		switch {
		case f.Deadlock != nil:
			for _, w := range inCycleFirst(f.Deadlock) {
				add(w.Thread)
			}
		case f.Culprit != nil:
			add(f.Culprit.Owner.Thread)
			first(f.Culprit.Victims)
			for _, c := range f.Others { // all wait alike
				if th := c.Wait.Thread; t.o.Only[th] {
					add(th)
				}
			}
		default:
			for i := range f.Convoy.Owners {
				add(f.Convoy.Owners[i].Thread)
			}
			first(f.Convoy.Waiters)
		}
	}
	return threads, len(over)
}
