package report

import (
	"cmp"
	"slices"
	"strings"

	"stackshot/internal/model"
	"stackshot/internal/show"
	"stackshot/kcdata"
)

// Order says what stands first within a section of the text.
type Order string

const (
	ByAge     Order = "age"     // longest in its state first
	ByName    Order = "name"    // by the command's name
	ByThreads Order = "threads" // most threads first
	ByCPU     Order = "cpu"     // most CPU time first
)

// Orders are the values of Order. Without one the text has its own order: what is in D, running or
// runnable by class and age, then groups of several tasks by size, then tasks by pid.
var Orders = []string{string(ByAge), string(ByName), string(ByThreads), string(ByCPU)}

// rank holds by what entries, and the groups of a task, are compared.
type rank struct {
	class   model.Class
	age     model.Age // the longest; by default: of the first group
	first   model.Age
	name    string
	threads int
	cpu     uint64 // ns, of all threads
	shared  bool
	id      uint64
}

// rankOf is the rank of groups, which are of task; nil: of any tasks.
func rankOf(task *taskView, groups []*group) (r rank) {
	e := entry{task: task, groups: groups}
	r.class, r.threads, r.shared = e.class(), e.threads(), task == nil
	for i, g := range groups {
		if i == 0 {
			r.first = g.age
			r.name, r.id = g.threads[0].comm(), g.threads[0].task.ID
		}
		if model.LongestFirst(g.age, r.age) < 0 {
			r.age = g.age
		}
		r.cpu += g.cpuTime()
	}
	if task != nil {
		r.name, r.id = task.Name, task.ID
	}
	return r
}

// by compares as o says.
func (o Order) by(a, b rank) int {
	switch o {
	case ByAge:
		return model.LongestFirst(a.age, b.age)
	case ByName:
		return cmp.Or(strings.Compare(show.Clean(a.name), show.Clean(b.name)), cmp.Compare(a.id, b.id))
	case ByThreads:
		return cmp.Compare(b.threads, a.threads)
	case ByCPU:
		return cmp.Compare(b.cpu, a.cpu)
	}
	return 0
}

// byInterest is the order where none is asked for, and among equals.
func byInterest(a, b rank) int {
	c := cmp.Compare(section(a.class), section(b.class))
	if c == 0 && a.class <= model.Runnable {
		c = cmp.Or(cmp.Compare(a.class, b.class), model.LongestFirst(a.first, b.first))
	}
	if c == 0 && a.shared != b.shared && a.shared {
		c = -1
	} else if c == 0 && a.shared != b.shared {
		c = 1
	}
	if c == 0 && a.shared {
		c = cmp.Or(cmp.Compare(b.threads, a.threads), model.LongestFirst(a.age, b.age))
	}
	return cmp.Or(c, cmp.Compare(a.id, b.id))
}

// sort orders the entries of a section, and the groups of each.
func (v *view) sort(entries []*entry) {
	order := v.order()
	ranks := make(map[*entry]rank, len(entries))
	for _, e := range entries {
		ranks[e] = rankOf(e.task, e.groups)
		if v.o.SortBy != "" && len(e.groups) > 1 {
			e.groups = sorted(e.groups, func(g *group) rank { return rankOf(nil, []*group{g}) }, v.o.SortBy.by)
		}
	}
	slices.SortStableFunc(entries, func(a, b *entry) int {
		x, y := ranks[a], ranks[b]
		return cmp.Or(order.by(x, y), byInterest(x, y))
	})
}

// order is that of the entries: the stacks of a file are by their threads unless told otherwise.
func (v *view) order() Order {
	if v.o.SortBy == "" && v.o.GroupBy == ByStack {
		return ByThreads
	}
	return v.o.SortBy
}

// sorted is a sorted copy of a list.
func sorted[T comparable](list []T, rankOf func(T) rank, compare func(a, b rank) int) []T {
	ranks := make(map[T]rank, len(list))
	for _, x := range list {
		ranks[x] = rankOf(x)
	}
	out := slices.Clone(list)
	slices.SortStableFunc(out, func(a, b T) int { return compare(ranks[a], ranks[b]) })
	return out
}

// sortParts orders sections: as the entries in them, but by name they are ordered by their titles.
func (v *view) sortParts(parts []*part) {
	rankOfPart := func(p *part) rank {
		var groups []*group
		for _, e := range p.entries {
			groups = append(groups, e.groups...)
		}
		r := rankOf(nil, groups)
		r.name, r.id, r.first = p.title, 0, r.age
		return r
	}
	copy(parts, sorted(parts, rankOfPart, func(a, b rank) int {
		return cmp.Or(v.o.SortBy.by(a, b), byInterest(a, b), strings.Compare(a.name, b.name))
	}))
}

// cpuTime is the CPU time that a thread has used since it began, in ns: the scheduler's sum, else
// the times of the two modes; 0 if the file has neither.
func cpuTime(t *kcdata.Thread) uint64 {
	l := &t.Linux
	switch {
	case l.Present&kcdata.ThreadHasRuntime != 0:
		return l.SumExecRuntime
	case l.Present&kcdata.ThreadHasTimes != 0:
		return l.Utime + l.Stime
	}
	return 0
}

func (g *group) cpuTime() (ns uint64) {
	for _, t := range g.threads {
		ns += cpuTime(t.Thread)
	}
	return ns
}
