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
	"stackshot/kcdata"
)

// Limits of what is said of a group of several tasks. Its pids and tids are all there.
const (
	groupExamples = 3 // threads named
	groupCommands = 4 // names of commands
)

// sharedText writes a group of any tasks: how many threads, what they do and for how long; who they
// are; what their tasks have in common; then the stack.
func (v *view) sharedText(l *lines, g *group) {
	l.Line("")
	tasks := g.tasks()
	color := ""
	if g.state.Class == model.Blocked {
		color = show.Red
	}
	l.colored(color, func() {
		l.Words("", "%s of %s: %s", show.Count(len(g.threads), "thread"), show.Count(len(tasks), "task"), v.doing(g))
	})
	l.Words("    ", "%s", g.who(tasks))
	if about := inCommon(tasks); about != "" {
		l.Words("    ", "%s", about)
	}
	v.stackText(l, g)
}

// doing says what the threads of a group do: their states with the ages, system call, wait.
func (v *view) doing(g *group) string {
	state := show.Parts{g.states()}
	state.Add("%s", g.note)
	calls := v.syscalls(g)
	state.If(calls != "", "in %s", calls)
	if v.o.GroupBy != ByWait { // the section says it
		state.Add("%s", v.waitsFor(g))
	}
	state.If(v.o.SortBy == ByCPU && g.threads[0].HasLinux, "CPU time %s", show.Duration(g.cpuTime()))
	return state.Join(", ")
}

// states says what the threads do, with the longest age in each state. If there are several
// states, it counts the threads of each.
func (g *group) states() string {
	index := map[string]*group{}
	var list []*group
	for _, t := range g.threads {
		same := once(index, t.state.Words, func() *group {
			list = append(list, &group{threadView: t, age: t.age})
			return list[len(list)-1]
		})
		same.threads = append(same.threads, t) // the longest age is the first
	}
	slices.SortStableFunc(list, compareGroups)
	var parts show.Parts
	for _, same := range list {
		words := same.stateAge(same.state.Words)
		if len(list) > 1 {
			words = fmt.Sprintf("%d %s", len(same.threads), words)
		}
		parts.Add("%s", words)
	}
	return parts.Join(", ")
}

// tasks are those of a group's threads, in the order of the threads.
func (g *group) tasks() (out []*kcdata.Task) {
	seen := map[*kcdata.Task]bool{}
	for _, t := range g.threads {
		if !seen[t.task] {
			seen[t.task] = true
			out = append(out, t.task)
		}
	}
	return out
}

// who names examples of a group's threads, counts their commands and lists all their numbers.
func (g *group) who(tasks []*kcdata.Task) string {
	var named []string
	for _, t := range g.examples() {
		named = append(named, t.named())
	}
	s := strings.Join(named, ", ")
	if n := len(g.threads) - len(named); n > 0 {
		s += fmt.Sprintf(" and %d more", n)
	}
	if c := commands(g.threads); c != "" {
		s += " (" + c + ")"
	}
	if len(g.threads) > len(named) {
		s += ": " + numbers(g.threads, tasks)
	}
	return s
}

// named names a thread: its task, its tid if that is another number, its own name if that is another.
func (t *threadView) named() string {
	if t.IsIdle() {
		return fmt.Sprintf("idle thread of CPU %d", uint32(t.ID))
	}
	s := account.Thread(t.task, t.ID)
	if t.Name != "" && t.Name != t.task.Name {
		s += ` "` + show.Clean(t.Name) + `"`
	}
	return s
}

// examples are threads of a group: that with the longest age, then those of other commands, of
// other tasks, and with the next ages.
func (g *group) examples() []*threadView {
	commands, tasks := map[string]bool{}, map[*kcdata.Task]bool{}
	var lists [3][]*threadView
	for _, t := range g.threads {
		at := 2
		if !commands[t.task.Name] {
			at = 0
		} else if !tasks[t.task] {
			at = 1
		}
		commands[t.task.Name], tasks[t.task] = true, true
		if len(lists[at]) < groupExamples {
			lists[at] = append(lists[at], t)
		}
	}
	all := slices.Concat(lists[:]...)
	return all[:min(len(all), groupExamples)]
}

// commands counts threads by the names of their tasks; "" if all have the same name.
func commands(threads []*threadView) string {
	count := map[string]int{}
	for _, t := range threads {
		count[cmp.Or(show.Clean(t.task.Name), "?")]++
	}
	if len(count) < 2 || len(threads) <= groupExamples {
		return ""
	}
	names := slices.SortedFunc(maps.Keys(count), func(a, b string) int {
		return cmp.Or(count[b]-count[a], strings.Compare(a, b))
	})
	for i, name := range names {
		names[i] = fmt.Sprintf("%s x%d", name, count[name])
	}
	return strings.Join(show.AtMost(groupCommands, names, func(n int) string { return "and " + show.Count(n, "other name") }), ", ")
}

// numbers lists all pids, and all tids if they are others.
func numbers(threads []*threadView, tasks []*kcdata.Task) string {
	var pids, tids []uint64
	for _, t := range tasks {
		pids = append(pids, t.ID)
	}
	for _, t := range threads {
		if !t.IsIdle() {
			tids = append(tids, t.ID)
		}
	}
	s := "pids " + allRanges(pids)
	if len(pids) == 1 {
		s = "pid " + allRanges(pids)
	}
	if text := allRanges(tids); len(tids) > 0 && text != allRanges(pids) {
		s += "; tids " + text
	}
	return s
}

// allRanges lists numbers as "1-4, 7", so that lines may break between them.
func allRanges(nums []uint64) string {
	return strings.ReplaceAll(show.Ranges(nums, len(nums)), ",", ", ")
}
