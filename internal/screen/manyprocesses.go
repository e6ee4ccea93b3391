package screen

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"stackshot/internal/model"
	"stackshot/internal/show"
	"stackshot/kcdata"
)

// groupOf counts tasks by a key and gives the largest group; ties go to the lesser key.
func groupOf[K cmp.Ordered](tasks []*task, key func(*task) (K, bool)) (best K, group []*kcdata.Task, of int) {
	groups := map[K][]*kcdata.Task{}
	for _, t := range tasks {
		if k, ok := key(t); ok {
			groups[k] = append(groups[k], t.Task)
			of++
		}
	}
	for k, list := range groups {
		if n := len(list); n > len(group) || n == len(group) && k < best {
			best, group = k, list
		}
	}
	return best, group, of
}

// manyProcesses tells of a command with most of the machine's processes.
func (v *view) manyProcesses() (entry, bool) {
	name, group, of := groupOf(v.tasks, func(t *task) (string, bool) { return t.Name, !t.IsKernel() && !isZombie(t) })
	n := len(group)
	if n < manyProcesses || 2*n < of {
		return entry{}, false
	}
	name = cmp.Or(short(name), "?")
	words := fmt.Sprintf("%s of %s processes are %s", show.Thousands(uint64(n)), show.Thousands(uint64(of)), name)
	if p, ok := v.parentOf(group); ok {
		words += p.words()
	}
	more := append(v.crowdedPlace(v.threadsOf(group)), v.aboutProgram(&program{name: name, tasks: group})...)
	return entry{line: row(show.Percent(uint64(n), uint64(of)), words), more: details(more...), threads: n, pid: group[0].ID}, true
}

// manyChildren tells of a process whose children are most of the machine's, of several commands.
func (v *view) manyChildren() (entry, bool) {
	pid, group, of := groupOf(v.tasks, func(t *task) (uint32, bool) {
		// Those whose parent ended are init's children.
		return t.Linux.Ppid, !t.IsKernel() && !isZombie(t) && t.Linux.Present&kcdata.TaskHasIDs != 0 && t.Linux.Ppid > 1
	})
	n := len(group)
	if n < manyProcesses || 2*n < of {
		return entry{}, false
	}
	if _, same, _ := groupOf(v.tasks, func(t *task) (string, bool) { return t.Name, t.Linux.Ppid == pid }); 2*len(same) >= n {
		return entry{}, false // told by their command
	}
	words := fmt.Sprintf("%s of %s processes are %s", show.Thousands(uint64(n)), show.Thousands(uint64(of)), strings.TrimPrefix(v.parent(pid).words(), ", "))
	return entry{line: row(show.Percent(uint64(n), uint64(of)), words), threads: n, pid: group[0].ID}, true
}

// manyZombies tells of a process that does not reap its children.
func (v *view) manyZombies() (entry, bool) {
	ended := map[*kcdata.Task]model.Age{}
	clock := model.NewClock(v.s)
	pid, group, of := groupOf(v.tasks, func(t *task) (uint32, bool) {
		if !isZombie(t) {
			return 0, false
		}
		a := clock.Age(t.threads[0].Thread, model.SinceSwitch) // the main thread: it alone stays
		ended[t.Task] = a
		return t.Linux.Ppid, !a.Known || a.Ns >= reapNs
	})
	n, old := len(group), 0
	for _, t := range group {
		if ended[t].Known {
			old++
		}
	}
	if n < manyZombies || 2*n < of || pid == 0 {
		return entry{}, false
	}
	p, ok := v.parentOf(group)
	if !ok {
		return entry{}, false
	}
	words := fmt.Sprintf("%s zombies older than %s%s, which does not reap them", show.Thousands(uint64(n)), show.Duration(reapNs), p.words())
	if old < manyZombies {
		words = fmt.Sprintf("%s zombies%s; the file does not say since when", show.Thousands(uint64(n)), p.words())
	}
	e := entry{line: row("", words), threads: n, pid: group[0].ID, minor: old < manyZombies}
	if p.name != "" {
		e.pid = uint64(p.pid)
	}
	e.more = details(v.aboutProgram(&program{name: cmp.Or(short(group[0].Name), "?"), tasks: group})...)
	return e, true
}

// isZombie reports whether all threads of t have ended.
func isZombie(t *task) bool {
	return !slices.ContainsFunc(t.threads, func(th *thread) bool { return th.state.Class != model.Zombie })
}

// threadsOf are the threads of tasks that are looked at.
func (v *view) threadsOf(tasks []*kcdata.Task) (out []*thread) {
	for _, t := range tasks {
		for _, th := range t.Threads {
			if x := v.of[th]; x != nil {
				out = append(out, x)
			}
		}
	}
	return out
}
