package screen

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"stackshot/internal/cgroupname"
	"stackshot/internal/model"
	"stackshot/internal/show"
	"stackshot/kcdata"
)

// program is the threads of one command: those of all tasks with its name.
type program struct {
	name    string    // clean
	threads []*thread // in the order in which they came
	tasks   []*kcdata.Task
	running int // of threads
	// children: it is the children of one process, and name says so.
	children bool
}

// programsOf groups threads by the name of their task: those with the most CPUs first, then those
// with the most threads.
func programsOf(threads []*thread) []*program {
	byName := map[string]*program{}
	seen := map[*kcdata.Task]bool{}
	var out []*program
	for _, t := range threads {
		c := byName[t.task.Name]
		if c == nil {
			c = &program{name: cmp.Or(short(t.task.Name), "?")}
			byName[t.task.Name] = c
			out = append(out, c)
		}
		c.threads = append(c.threads, t)
		if t.state.Class == model.Running {
			c.running++
		}
		if !seen[t.task] {
			seen[t.task] = true
			c.tasks = append(c.tasks, t.task)
		}
	}
	slices.SortStableFunc(out, func(a, b *program) int {
		return cmp.Or(b.running-a.running, len(b.threads)-len(a.threads))
	})
	return out
}

// several names more than one thread of c: "8 threads of billing-batch [801]", "8 x cc1 [801]"
// if each is of a process of its own.
func (c *program) several() string {
	first := fmt.Sprintf("%s [%d]", c.name, c.tasks[0].ID)
	switch n := len(c.tasks); {
	case len(c.threads) == 1:
		return first
	case n == 1:
		return show.Count(len(c.threads), "thread") + " of " + first
	case n == len(c.threads):
		return fmt.Sprintf("%d x %s", n, first)
	default:
		return fmt.Sprintf("%d threads of %d x %s", len(c.threads), n, first)
	}
}

// maxPids is how many processes of a command a line lists.
const maxPids = 8

// aboutProgram has the other processes of a command, and whose they are.
func (v *view) aboutProgram(c *program) (more []string) {
	if n := len(c.tasks); n > 1 {
		var pids []string
		for _, t := range c.tasks[1:min(n, 1+maxPids)] {
			pids = append(pids, fmt.Sprint(t.ID))
		}
		more = append(more, fmt.Sprintf("%s: %d, %s%s", c.name, c.tasks[0].ID, strings.Join(pids, ", "), andMore(n-1-maxPids)))
	}
	if home := v.homeOf(c.tasks); home != "" {
		more = append(more, "in "+home)
	}
	return more
}

// home names the unit, pod or container of a task; "" if the file does not say, or if that is
// nothing but its own name again.
func (v *view) home(t *kcdata.Task) string {
	path := cmp.Or(t.Cgroup, t.MemoryCgroup)
	name := cgroupname.Short(path)
	if name == "" || name == show.Clean(t.Name)+".service" {
		return ""
	}
	return name
}

// homeOf is the home that all the tasks have; "" if they have several.
func (v *view) homeOf(tasks []*kcdata.Task) string {
	home := v.home(tasks[0])
	for _, t := range tasks[1:] {
		if v.home(t) != home {
			return ""
		}
	}
	return home
}

// in is a further line that names the home of some tasks, if they have one.
func (v *view) in(tasks ...*kcdata.Task) []string {
	if len(tasks) == 0 {
		return nil
	}
	if home := v.homeOf(tasks); home != "" {
		return details("in " + home)
	}
	return nil
}
