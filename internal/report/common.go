package report

import (
	"fmt"
	"strings"

	"stackshot/internal/show"
	"stackshot/kcdata"
)

// inCommon says of the tasks of a group what a task's line says of one: parent, user, memory in
// all, program, control group. What differs is counted.
func inCommon(tasks []*kcdata.Task) string {
	var parts show.Parts
	for _, w := range []struct {
		has  func(*kcdata.Task) bool
		word string
	}{
		{func(t *kcdata.Task) bool { return t.Transitioning }, "exiting"},
		{func(t *kcdata.Task) bool { return t.IsKernel() && !t.Transitioning }, "kernel thread"},
		{func(t *kcdata.Task) bool { return t.Linux.Present&kcdata.TaskInExec != 0 }, "inside execve"},
		{func(t *kcdata.Task) bool { return t.Linux.Present&kcdata.TaskCoreDumping != 0 }, "dumping core"},
		{(*kcdata.Task).IsSelf, "our own"},
	} {
		n := 0
		for _, t := range tasks {
			if w.has(t) {
				n++
			}
		}
		parts.If(n == len(tasks), "%s", w.word)
		parts.If(n > 0 && n < len(tasks), "%d %s", n, w.word)
	}
	ids := func(of func(*kcdata.Task) uint32) func(*kcdata.Task) string {
		return func(t *kcdata.Task) string {
			if t.Linux.Present&kcdata.TaskHasIDs == 0 {
				return ""
			}
			return fmt.Sprint(of(t))
		}
	}
	parts.Add("%s", shared(tasks, "ppid ", "ppids", ids(func(t *kcdata.Task) uint32 { return t.Linux.Ppid })))
	parts.Add("%s", shared(tasks, "uid ", "uids", ids(func(t *kcdata.Task) uint32 { return t.Linux.UID })))
	parts.Add("%s", memoryOf(tasks))
	parts.Add("%s", shared(tasks, "", "command lines", program))
	parts.Add("%s", shared(tasks, "cgroup ", "cgroups", func(t *kcdata.Task) string {
		if t.Cgroup == "/" {
			return ""
		}
		return show.Clean(t.Cgroup)
	}))
	parts.Add("%s", shared(tasks, "not read: ", "reasons for what was not read", func(t *kcdata.Task) string {
		return strings.Join(unread(t), "; ")
	}))
	return parts.Join("  ")
}

// shared is a value that all tasks have, behind its word; if they have several, their number and
// the first. A task without a value counts as one with another.
func shared(tasks []*kcdata.Task, word, many string, of func(*kcdata.Task) string) string {
	values := map[string]bool{}
	example := ""
	for _, t := range tasks {
		v := of(t)
		values[v] = true
		if example == "" {
			example = v
		}
	}
	switch {
	case example == "":
		return ""
	case len(values) == 1:
		return word + example
	}
	delete(values, "")
	if len(values) == 1 {
		return "of some " + word + example
	}
	return fmt.Sprintf("%d %s, e.g. %s", len(values), many, example)
}

// memoryOf is the resident memory of all tasks. Pages that they share count for each.
func memoryOf(tasks []*kcdata.Task) string {
	sum, known := uint64(0), 0
	for _, t := range tasks {
		if m := t.Memory; m != nil {
			sum += m.RssFile + m.RssAnon + m.RssShmem
			known++
		}
	}
	switch {
	case known == 0:
		return ""
	case len(tasks) == 1:
		return "RSS " + show.Size(sum)
	}
	return "RSS " + show.Size(sum) + " in all"
}
