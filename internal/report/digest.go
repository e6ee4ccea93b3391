package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"stackshot/internal/account"
	"stackshot/internal/model"
	"stackshot/internal/show"
)

// Limits of the digest: it fits on a screen of 24 lines together with the header and a
// prompt (R5).
const (
	digestBlocked = 4 // two lines each
	digestRunning = 3 // one or two lines each
	digestNames   = 3 // tasks named in one entry
	chainFrames   = 4 // of the stack of an entry
)

// digest writes what stands out: threads in D, then threads that run or wait for a
// CPU, grouped across tasks by state and stack.
func (v *view) digest(l *lines) {
	groups := v.standingOut()
	blocked, runnable := groups[model.Blocked], groups[model.Runnable]
	l.Words("", "%s", v.census())
	switch {
	case v.counts.Shown == 0 || len(blocked) > 0:
	case v.o.Only != nil:
		l.Line("None of the threads asked for is in uninterruptible sleep (D).")
	default:
		l.Line("No thread is in uninterruptible sleep (D).")
	}
	v.entries(l, blocked, digestBlocked, "in D")
	v.entries(l, groups[model.Running], digestRunning, "running")
	if len(runnable) > 0 {
		l.Line("  %s", runnableText(runnable))
	}
}

// standingOut groups the threads that stand out across tasks: by class, longest wait first.
func (v *view) standingOut() (out [model.Runnable + 1][]*group) {
	threads := slices.DeleteFunc(v.threads(), func(t *threadView) bool { return t.state.Class > model.Runnable })
	for _, g := range groupThreads(threads, v.kernelPlace) {
		out[g.state.Class] = append(out[g.state.Class], g)
	}
	return out
}

// entries writes at most limit groups: for how long and who, then where. What
// matters most comes first, because a narrow terminal cuts the end of a line.
func (v *view) entries(l *lines, groups []*group, limit int, what string) {
	for _, g := range groups[:min(limit, len(groups))] {
		words := g.state.Words
		if g.state.Class == model.Blocked {
			words = "D"
		}
		state := show.Parts{g.names()}
		calls := v.syscalls(g)
		state.If(calls != "", "in %s", calls)
		state.Add("%s", g.note)
		l.Line("  %s: %s", g.stateAge(words), state.Join(", "))
		if len(g.kernel) > 0 {
			l.Line("      at %s", chain(model.SkipSleep(v.s.Symbols, g.kernel), chainFrames, v.kernelName))
		} else if len(g.user) > 0 {
			l.Line("      at %s", chain(g.user, chainFrames, (*userFrame).userName))
		}
	}
	if len(groups) > limit {
		rest := groups[limit:]
		l.Line("  and %s %s at %s", show.Count(threadsOf(rest), "more thread"), what, show.Count(len(rest), "other place"))
	}
}

// threadsOf counts the threads of groups.
func threadsOf(groups []*group) (n int) {
	for _, g := range groups {
		n += len(g.threads)
	}
	return n
}

// names names the tasks of the threads, with the number of threads of each.
func (g *group) names() string {
	var first []*threadView // of each task
	perTask := map[uint64]int{}
	for _, t := range g.threads {
		if perTask[t.task.ID]++; perTask[t.task.ID] == 1 {
			first = append(first, t)
		}
	}
	var names []string
	for _, t := range first[:min(len(first), digestNames)] {
		name := account.Thread(t.task, t.ID)
		if n := perTask[t.task.ID]; n > 1 && len(first) > 1 {
			name += fmt.Sprintf(" x%d", n)
		}
		names = append(names, name)
	}
	s := strings.Join(names, ", ")
	if n := len(first) - digestNames; n > 0 {
		s += " and " + show.Count(n, "more task")
	}
	if n := len(g.threads); n > 1 {
		s = show.Count(n, "thread") + " of " + s
	}
	return s
}

// runnableText is one line for all threads that wait for a CPU; it names the one that
// has waited longest.
func runnableText(groups []*group) string {
	n, words := threadsOf(groups), groups[0].state.Words
	if slices.ContainsFunc(groups, func(g *group) bool { return g.state.Words != words }) {
		words = "runnable"
	}
	t := groups[0].threads[0]
	s := words
	if n > 1 {
		s = show.Count(n, "thread") + " " + words
	}
	s += account.Age(t.age) + ": " + account.Thread(t.task, t.ID)
	if n > 1 {
		s += fmt.Sprintf(" and %d more", n-1)
	}
	return s
}

// census counts the shown threads by class.
func (v *view) census() string {
	var parts show.Parts
	for c, n := range v.classes {
		parts.If(n > 0, "%d %s", n, model.Class(c).Many())
	}
	c := v.counts
	folded := c.FoldedKernel + c.FoldedCPUIdle
	parts.If(folded > 0, "%d idle in the kernel", folded)
	parts.If(c.NotAsked > 0, "%d not asked for", c.NotAsked)
	s := fmt.Sprintf("%s in %s", show.Count(c.Threads, "thread"), show.Count(c.Tasks, "task"))
	if len(parts) > 0 {
		s += ": " + parts.Join(", ")
	}
	return s
}

// footer lists the files that were not symbolized and the idle kernel threads, and
// accounts for every thread (R1).
func (v *view) footer(l *lines) {
	c := v.counts
	l.Line("")
	if err := l.room.err(); err != nil {
		l.Words("!! ", "%v", err)
	}
	if n := len(v.o.NotSymbolized); n > 0 {
		l.Words("", "files not symbolized: %s", strings.Join(atMost(maxSkipped, cleanAll(v.o.NotSymbolized), andMore), "; "))
	}
	if c.FoldedKernel > 0 {
		l.Words("", "%s, asleep until there is work: %s", show.Count(c.FoldedKernel, "idle kernel thread"), v.families())
	}
	l.Words("", "%s: %d shown, %d idle kernel threads folded, %d idle threads of CPUs folded, %d of our own hidden, %d not asked for",
		show.Count(c.Threads, "thread"), c.Shown, c.FoldedKernel, c.FoldedCPUIdle, c.HiddenSelf, c.NotAsked)
}

// maxSkipped bounds the list of files that were not symbolized.
const maxSkipped = 6

// maxFamilies bounds the list of idle kernel threads.
const maxFamilies = 12

// families lists the folded kernel threads, the most numerous first.
func (v *view) families() string {
	names := slices.SortedFunc(maps.Keys(v.folded), func(a, b string) int {
		return cmp.Or(v.folded[b]-v.folded[a], strings.Compare(a, b))
	})
	for i, name := range names {
		if n := v.folded[name]; n > 1 {
			names[i] = fmt.Sprintf("%s x%d", name, n)
		}
	}
	return strings.Join(atMost(maxFamilies, names, func(n int) string { return "and " + show.Count(n, "other name") }), ", ")
}

// family is a kernel thread's name without the numbers that tell it from its siblings:
// kworker/0:1 and kworker/u8:2 are of the family kworker, jbd2/vda1-8 is of jbd2.
func family(task, thread string) string {
	name := cmp.Or(task, thread)
	if i := strings.IndexAny(name, "/:"); i > 0 {
		name = name[:i]
	}
	return show.Clean(cmp.Or(strings.TrimRight(name, "0123456789"), name))
}
