package screen

import (
	"fmt"

	"stackshot/internal/account"
	"stackshot/internal/model"
	"stackshot/internal/show"
	"stackshot/kcdata"
)

// When a number is out of proportion. A server with a thread for each connection has hundreds of
// threads, a large one some thousands, and they are most of its machine's.
const (
	// manyThreads in one process, and half of the machine's, are worth a mention.
	manyThreads = 1000
	// leakThreads likewise are wrong: their stacks alone take gigabytes of address space, and
	// kernel.pid_max is 32,768 on many machines.
	leakThreads = 5000
	// growingPart: with a quarter of its threads made in the last minute, a process with
	// manyThreads is on its way there, and wrong before.
	growingPart = 4
	growingNs   = 60e9
	// manyProcesses of one command, and half of the machine's: databases and web servers with a
	// process for each connection have hundreds.
	manyProcesses = 1000
	// manyZombies of one parent, each older than reapNs: it does not reap. A parent that a signal
	// tells of each end reaps at once, one that looks now and then does so within a second or two;
	// hundreds may end in between.
	manyZombies = 100
	reapNs      = uint64(5e9)
)

// many says who has a disproportionate share of the threads or processes.
func (v *view) many() section {
	out := section{title: "MANY"}
	all := v.sizes()
	for _, size := range all.of {
		if e, ok := v.manyThreads(size, all.total); ok {
			out.entries = append(out.entries, e)
		}
	}
	for _, find := range []func() (entry, bool){v.manyProcesses, v.manyChildren, v.manyZombies} {
		if e, ok := find(); ok {
			out.entries = append(out.entries, e)
		}
	}
	return out
}

// size is how many threads a task has, those that are not in the file among them.
type size struct {
	id      uint64
	task    *task // nil: the file does not have it
	threads int
	missing int // of threads
}

// pid is the task to look at next; 0: the file does not have it.
func (z *size) pid() uint64 {
	if z.task == nil {
		return 0
	}
	return z.id
}

type sizes struct {
	of    []*size // in file order, then those that were left out
	total int
}

// sizes counts the threads of all tasks. A task that was left out, wholly or in part, because it
// has so many threads is just the one to be told of. If only some threads are looked at, these
// count alone.
func (v *view) sizes() (all sizes) {
	byID := map[uint64]*size{}
	for _, t := range v.tasks {
		z := &size{id: t.ID, task: t, threads: len(t.threads)}
		byID[t.ID] = z
		all.of = append(all.of, z)
	}
	for _, left := range v.s.LeftOut {
		if v.o.Only != nil || left.Reason == kcdata.LeftOutVanished {
			continue
		}
		z := byID[uint64(left.Tgid)]
		if z == nil {
			z = &size{id: uint64(left.Tgid)}
			byID[z.id] = z
			all.of = append(all.of, z)
		}
		z.missing += int(min(left.Threads, maxTids))
	}
	for _, z := range all.of {
		z.missing = min(z.missing, maxTids)
		z.threads += z.missing
		all.total += z.threads
	}
	return all
}

// maxTids is how many threads a machine can have (PID_MAX_LIMIT).
const maxTids = 4 << 20

// manyThreads tells of a process that has most of the machine's threads.
func (v *view) manyThreads(z *size, total int) (entry, bool) {
	n := z.threads
	if n < manyThreads || 2*n < total || z.task != nil && z.task.IsKernel() {
		return entry{}, false
	}
	name, fresh := fmt.Sprintf("task %d, which is not in the file,", z.id), 0
	if z.task != nil {
		name, fresh = account.Task(z.task.Task), v.freshOf(z.task)
	}
	growing := growingPart*fresh >= n
	e := entry{threads: n - z.missing, pid: z.pid(), minor: n < leakThreads && !growing}
	e.line = row(show.Percent(uint64(n), uint64(total)), fmt.Sprintf("%s has %s threads, of %s", name, show.Thousands(uint64(n)), show.Thousands(uint64(total))))
	if z.missing > 0 {
		e.more = append(e.more, fmt.Sprintf("%s of them are not in the file", show.Thousands(uint64(z.missing))))
	}
	if fresh > 0 {
		e.more = append(e.more, fmt.Sprintf("%s of them were made in the last minute", show.Thousands(uint64(fresh))))
	}
	if z.task != nil {
		e.more = append(e.more, v.crowdedPlace(z.task.threads)...)
		if home := v.home(z.task.Task); home != "" {
			e.more = append(e.more, "in "+home)
		}
	}
	e.more = details(e.more...)
	return e, true
}

// freshOf is how many threads of t were made in the last minute.
func (v *view) freshOf(t *task) (fresh int) {
	now := v.s.Machine.BoottimeNs
	for _, th := range t.threads {
		at := th.Linux.StartBoottime
		if th.Linux.Present&kcdata.ThreadHasStart != 0 && now > growingNs && at+growingNs > now {
			fresh++
		}
	}
	return fresh
}

// crowdedPlace says where most of threads sleep.
func (v *view) crowdedPlace(threads []*thread) (more []string) {
	places := map[string]int{}
	best := ""
	for _, t := range threads {
		if t.state.Class != model.Sleeping && t.state.Class != model.Blocked {
			continue
		}
		p := v.place(t)
		if p == "" {
			continue
		}
		places[p]++
		if best == "" || places[p] > places[best] || places[p] == places[best] && p < best {
			best = p
		}
	}
	if n := places[best]; 2*n >= len(threads) && best != "" {
		return []string{fmt.Sprintf("%s of them sleep in %s", show.Thousands(uint64(n)), best)}
	}
	return nil
}
