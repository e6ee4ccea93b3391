package report

import (
	"cmp"
	"slices"
	"strings"

	"stackshot/internal/model"
	"stackshot/internal/show"
	"stackshot/kcdata"
)

// Grouping says how the text sorts the threads.
type Grouping string

const (
	ByState  Grouping = "state"  // sections by state; a stack that several tasks share is one group; "" means this one
	ByStack  Grouping = "stack"  // one group for each stack of the file, whatever the state
	ByWait   Grouping = "wait"   // sections by what is waited for
	ByTask   Grouping = "task"   // sections by state; each task with all its threads
	ByCgroup Grouping = "cgroup" // sections by control group
)

// Groupings are the values of Grouping.
var Groupings = []string{string(ByState), string(ByStack), string(ByWait), string(ByTask), string(ByCgroup)}

// part is a section of the text: a heading and what stands below it.
type part struct {
	title   string
	entries []*entry
}

// entry is a task with the groups of its own, or one group of threads of any tasks.
type entry struct {
	task   *taskView // nil: one group of any tasks
	groups []*group
}

// threads counts those of an entry.
func (e *entry) threads() int { return threadsOf(e.groups) }

// threadsOf counts the threads of groups.
func threadsOf(groups []*group) (n int) {
	for _, g := range groups {
		n += len(g.threads)
	}
	return n
}

func (p *part) threads() (n int) {
	for _, e := range p.entries {
		n += e.threads()
	}
	return n
}

// tasks counts the tasks that have threads in a section, or stand there without threads.
func (p *part) tasks() int {
	seen := map[*kcdata.Task]bool{}
	for _, e := range p.entries {
		if e.task != nil {
			seen[e.task.Task] = true
		}
		for _, g := range e.groups {
			for _, t := range g.threads {
				seen[t.task] = true
			}
		}
	}
	return len(seen)
}

// parts sorts the shown threads into sections. Each thread is in one group of one section.
func (v *view) parts() []*part {
	switch v.o.GroupBy {
	case ByStack:
		return v.byStack()
	case ByWait:
		return v.byWait()
	case ByCgroup:
		return v.byCgroup()
	case ByTask:
		return v.byState(taskEntries(v.tasks))
	}
	return v.byState(sharedEntries(v.tasks))
}

// taskEntries has an entry for each task, with all its groups.
func taskEntries(tasks []*taskView) (out []*entry) {
	for _, t := range tasks {
		out = append(out, &entry{task: t, groups: t.groups})
	}
	return out
}

// sharedEntries has an entry for each group that several of the tasks have, and one for each task
// that has a group of its own, or no thread at all.
func sharedEntries(tasks []*taskView) (out []*entry) {
	index := map[string][]*group{}
	for _, t := range tasks {
		for _, g := range t.groups {
			index[g.key] = append(index[g.key], g)
		}
	}
	for _, t := range tasks {
		own := &entry{task: t}
		for _, g := range t.groups {
			switch same := index[g.key]; {
			case len(same) == 1:
				own.groups = append(own.groups, g)
			case same[0] == g:
				out = append(out, &entry{groups: []*group{merged(same)}})
			}
		}
		if len(own.groups) > 0 || len(t.groups) == 0 {
			out = append(out, own)
		}
	}
	return out
}

// merged is one group of the threads of all groups, which have the same key.
func merged(groups []*group) *group {
	m := &group{threadView: groups[0].threadView, key: groups[0].key, kernel: groups[0].kernel, mixed: slices.Clone(groups[0].mixed)}
	for _, g := range groups {
		m.threads = append(m.threads, g.threads...)
		if model.LongestFirst(g.age, m.age) < 0 {
			m.age = g.age
		}
		for i := range m.mixed {
			m.mixed[i] = m.mixed[i] || g.mixed[i] || g.kernel[i] != m.kernel[i]
		}
	}
	m.oldestFirst()
	return m
}

// byState sorts entries into the sections of the states, most interesting first.
func (v *view) byState(entries []*entry) []*part {
	sections := make([]*part, len(sectionNames))
	for i, name := range sectionNames {
		sections[i] = &part{title: name}
	}
	for _, e := range entries {
		p := sections[section(e.class())]
		p.entries = append(p.entries, e)
	}
	sections = slices.DeleteFunc(sections, func(p *part) bool { return len(p.entries) == 0 })
	for _, p := range sections {
		v.sort(p.entries)
	}
	return sections
}

// class is that of the most interesting thread.
func (e *entry) class() model.Class {
	class := model.ClassCount
	for _, g := range e.groups {
		class = min(class, g.state.Class)
	}
	switch {
	case class < model.ClassCount:
		return class
	case e.task != nil && e.task.Transitioning:
		return model.Zombie
	}
	return model.Unknown
}

// byStack has one section, with a group for each stack.
func (v *view) byStack() []*part {
	threads := v.threads()
	// The group is of the class of its first thread: that is to be its most interesting one.
	slices.SortStableFunc(threads, func(a, b *threadView) int { return cmp.Compare(a.state.Class, b.state.Class) })
	groups := groupThreads(threads, v.stackKey)
	p := &part{title: strings.ToUpper(show.Count(len(groups), "stack")), entries: groupEntries(groups)}
	p.entries = append(p.entries, withoutThreads(v.tasks)...)
	v.sort(p.entries)
	return []*part{p}
}

func groupEntries(groups []*group) (out []*entry) {
	for _, g := range groups {
		out = append(out, &entry{groups: []*group{g}})
	}
	return out
}

// withoutThreads are the tasks of which the file has no thread: they are in no group.
func withoutThreads(tasks []*taskView) []*entry {
	return taskEntries(slices.DeleteFunc(slices.Clone(tasks), func(t *taskView) bool { return len(t.groups) > 0 }))
}

// byCgroup has a section for each control group.
func (v *view) byCgroup() []*part {
	index := map[string][]*taskView{}
	var paths []string
	for _, t := range v.tasks {
		if index[t.Cgroup] == nil {
			paths = append(paths, t.Cgroup)
		}
		index[t.Cgroup] = append(index[t.Cgroup], t)
	}
	var parts []*part
	for _, path := range paths {
		p := &part{title: cgroupTitle(path), entries: sharedEntries(index[path])}
		v.sort(p.entries)
		parts = append(parts, p)
	}
	v.sortParts(parts)
	return parts
}
