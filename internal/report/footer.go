package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"stackshot/internal/model"
	"stackshot/internal/show"
)

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
		l.Words("", "files not symbolized: %s", strings.Join(firstOf(maxSkipped, cleanAll(v.o.NotSymbolized), func(n int) string { return fmt.Sprintf("and %d more", n) }), "; "))
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
	return strings.Join(firstOf(maxFamilies, names, func(n int) string { return "and " + show.Count(n, "other name") }), ", ")
}

// firstOf returns the first n entries of a list. If there are more, one further entry, made
// by more, says how many.
func firstOf(n int, list []string, more func(n int) string) []string {
	if rest := len(list) - n; rest > 0 {
		return append(list[:n:n], more(rest))
	}
	return list
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
