package screen

import (
	"cmp"
	"fmt"
	"strings"

	"stackshot/internal/model"
	"stackshot/internal/show"
	"stackshot/kcdata"
)

// When a command is a crowd.
const (
	// crowdPerCPU runnable threads of one command for each CPU: a build or a pool that fits the
	// machine has one to three. With eight, each waits for a turn that comes every 25 ms.
	crowdPerCPU = 8
	// crowdLeast: with fewer there is no crowd, however few CPUs.
	crowdLeast = 16
	// youngNs, youngPerCPU, youngLeast: so many processes that are alive and younger than this
	// are no build (which has about four for each job), and no start of a service.
	youngNs     = 1e9
	youngPerCPU = 16
	youngLeast  = 48
	// stormRate is new pids per second: a shell script that does nothing but start programs
	// reaches some hundreds on a CPU.
	stormRate = 1000
	// stormYoung: so many of a crowd are young in no start of a service, whatever the rate, which a
	// file may not tell. A web server with a process for each client starts 256 at most.
	stormYoung = 500
)

// crowd tells of the command, or of the children of one process, that have at least a third of all
// runnable threads, more than anybody else, and too many for the CPUs.
func (v *view) crowd(l *load) (entry, bool) {
	c, ok := v.crowdOf(l)
	if !ok {
		return entry{}, false
	}
	n := len(c.threads)
	young := v.youngOf(c.tasks)
	rate, known := v.pidRate()
	storm := 2*len(young) >= len(c.tasks) && (len(young) >= stormYoung || len(young) >= crowdLeast && known && rate >= stormRate)
	words := fmt.Sprintf("%d of %d runnable threads are %s", n, l.runnable(), c.name)
	if len(c.tasks) == 1 {
		words = fmt.Sprintf("%d of %d runnable threads are of %s [%d]", n, l.runnable(), c.name, c.tasks[0].ID)
	}
	if storm {
		words += ": fork storm"
	}
	p, ok := v.parentOf(c.tasks)
	if ok && !c.children {
		words += p.words()
	}
	longest := model.Age{}
	if len(l.waiting) > 0 {
		longest = l.waiting[0].age
	}
	// Where nobody waits for long, as beside a disk, so many are no trouble.
	minor := !storm && longest.Known && longest.Ns < busyNs
	e := entry{line: row(age(longest), words), threads: n, pid: c.tasks[0].ID, minor: minor}
	if ok && p.name != "" {
		e.pid = uint64(p.pid)
	}
	if storm {
		e.more = append(e.more, fmt.Sprintf("%d of these %d processes are younger than 1 s%s", len(young), len(c.tasks), v.rateWords()))
	} else {
		e.more = append(e.more, fmt.Sprintf("that is %d for each CPU", n/max(l.cpus, 1)))
	}
	if len(l.waiting) > 0 {
		e.more = append(e.more, l.waiting[0].name()+" waits longest for a CPU")
	}
	e.more = details(append(e.more, v.aboutProgram(c)...)...)
	return e, true
}

// crowdOf is the crowd, if there is one. Children of one process are one crowd under whatever
// names: what is forked has its parent's name until it executes something.
func (v *view) crowdOf(l *load) (*program, bool) {
	c := &program{}
	for _, by := range l.programs {
		if len(by.threads) > len(c.threads) {
			c = by
		}
	}
	if p, children := v.siblings(l.all()); 5*len(children) > 6*len(c.threads) {
		c = programsOf(children)[0]
		for _, other := range programsOf(children)[1:] {
			c.threads, c.tasks = append(c.threads, other.threads...), append(c.tasks, other.tasks...)
		}
		c.name, c.children = strings.TrimPrefix(p.words(), ", "), true
	}
	n := len(c.threads)
	return c, n >= max(crowdLeast, crowdPerCPU*l.cpus) && 3*n >= l.runnable()
}

// siblings are the threads of the children of one process, that which has the most of them.
func (v *view) siblings(threads []*thread) (p parent, out []*thread) {
	byParent := map[uint32][]*thread{}
	for _, t := range threads {
		// Those whose parent ended are init's children; kthreadd's are the kernel's.
		if pid := t.task.Linux.Ppid; t.task.Linux.Present&kcdata.TaskHasIDs != 0 && pid > 2 && !t.isKernel() {
			byParent[pid] = append(byParent[pid], t)
		}
	}
	for pid, list := range byParent {
		if len(list) > len(out) || len(list) == len(out) && pid < p.pid {
			p.pid, out = pid, list
		}
	}
	return v.parent(p.pid), out
}

// young tells of many processes of one command that have just been started, if not all of them
// are runnable: those that crowd tells of.
func (v *view) young(l *load) (entry, bool) {
	var all []*kcdata.Task
	byName := map[string][]*kcdata.Task{}
	most := ""
	for _, t := range v.tasks {
		if !t.IsKernel() && v.isYoung(t.Task) {
			all = append(all, t.Task)
			byName[t.Name] = append(byName[t.Name], t.Task)
			if len(byName[t.Name]) > len(byName[most]) {
				most = t.Name
			}
		}
	}
	tasks := byName[most]
	if n := len(tasks); n < max(youngLeast, youngPerCPU*l.cpus) || 2*n < len(all) || v.justBooted() {
		return entry{}, false
	}
	if _, told := v.crowdOf(l); told {
		return entry{}, false
	}
	words := fmt.Sprintf("%d processes younger than 1 s are %s", len(tasks), cmp.Or(short(most), "?"))
	if p, ok := v.parentOf(tasks); ok {
		words += p.words()
	}
	rate, known := v.pidRate()
	return entry{line: row("", words+v.rateWords()), threads: len(tasks), pid: tasks[0].ID, minor: !known || rate < stormRate}, true
}

// justBooted: on a machine that is young itself, everything is.
func (v *view) justBooted() bool { return v.s.Machine.BoottimeNs < 60*youngNs }

func (v *view) isYoung(t *kcdata.Task) bool {
	now := v.s.Machine.BoottimeNs
	return t.Linux.Present&kcdata.TaskHasTimes != 0 && now > 0 && t.Linux.StartBoottime+youngNs > now
}

func (v *view) youngOf(tasks []*kcdata.Task) (out []*kcdata.Task) {
	for _, t := range tasks {
		if v.isYoung(t) {
			out = append(out, t)
		}
	}
	return out
}

// parent is the process that most of some others are children of.
type parent struct {
	pid  uint32
	name string // clean; "": the file does not have it
}

// parentOf is the parent of at least half of the tasks; ok is false if there is none.
func (v *view) parentOf(tasks []*kcdata.Task) (p parent, ok bool) {
	children, most := map[uint32]int{}, 0
	for _, t := range tasks {
		if t.Linux.Present&kcdata.TaskHasIDs == 0 || t.Linux.Ppid == 0 {
			continue
		}
		pid := t.Linux.Ppid
		children[pid]++
		if n := children[pid]; n > most || n == most && pid < p.pid {
			p.pid, most = pid, n
		}
	}
	if most < 2 || 2*most < len(tasks) {
		return parent{}, false
	}
	return v.parent(p.pid), true
}

// parent is the process pid, by its name if the file has it.
func (v *view) parent(pid uint32) parent {
	for _, t := range v.s.Tasks {
		if t.ID == uint64(pid) {
			return parent{pid, cmp.Or(short(t.Name), "?")}
		}
	}
	return parent{pid: pid}
}

// words names the parent of a crowd: ", children of loadgen [77]".
func (p parent) words() string {
	switch p.name {
	case "":
		return fmt.Sprintf(", children of %d (not in the file)", p.pid)
	}
	return fmt.Sprintf(", children of %s [%d]", p.name, p.pid)
}

// rateWords says how many new pids the machine had a second, if it had many.
func (v *view) rateWords() string {
	if rate, known := v.pidRate(); known && rate >= stormRate/10 {
		return fmt.Sprintf(", about %s new pids a second", show.Thousands(uint64(rate)))
	}
	return ""
}
