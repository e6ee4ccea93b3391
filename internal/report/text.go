package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"stackshot/internal/account"
	"stackshot/internal/model"
	"stackshot/internal/show"
	"stackshot/internal/sysno"
	"stackshot/kcdata"
)

// Text writes the report for people: the first screen, how the picture was taken, then every task
// in sections, most interesting first. Errors: the writer's, *CutError.
func Text(w io.Writer, s *kcdata.Snapshot, o Options) error {
	v := newView(s, o)
	l := newLines(w, o)
	if err := v.first(l); err != nil {
		return err
	}
	v.taken(l)
	last := -1
	for _, t := range v.tasks {
		if l.room.full() {
			l.room.Threads += t.shown
			continue
		}
		if n := section(t.class()); n != last {
			last = n
			v.sectionTitle(l, n)
		}
		v.taskText(l, t)
	}
	v.footer(l)
	return l.close()
}

func (v *view) sectionTitle(l *lines, n int) {
	tasks, threads := 0, 0
	for _, t := range v.tasks {
		if section(t.class()) == n {
			tasks++
			threads += t.shown
		}
	}
	l.Line("")
	l.colored(show.Bold, func() {
		l.Line("== %s: %s, %s in all", sectionNames[n], show.Count(tasks, "task"), show.Count(threads, "thread"))
	})
}

// taskText writes one task: its name and figures, then its groups of threads.
func (v *view) taskText(l *lines, t *taskView) {
	l.Line("")
	l.Line("%s", taskLine(t.Task))
	for _, f := range t.EnrichFailed {
		l.Line("    not read: %s", show.Clean(f))
	}
	if len(t.Threads) == 0 {
		l.Line("    no threads in the file")
	}
	for _, g := range t.groups {
		if l.room.full() {
			l.room.Threads += len(g.threads)
			continue
		}
		v.groupText(l, t, g)
	}
	if hidden := len(t.Threads) - t.shown; hidden > 0 && v.only == nil {
		l.Line("    %s not listed here (idle or our own)", show.Count(hidden, "more thread"))
	}
}

// taskLine is one line on a task: what it is and how large.
func taskLine(t *kcdata.Task) string {
	p := t.Linux.Present
	parts := show.Parts{account.Task(t)}
	parts.If(t.Transitioning, "exiting")
	parts.If(t.IsKernel() && !t.Transitioning, "kernel thread")
	parts.If(p&kcdata.TaskInExec != 0, "inside execve")
	parts.If(p&kcdata.TaskCoreDumping != 0, "dumping core")
	parts.If(t.IsSelf(), "our own")
	parts.If(p&kcdata.TaskHasIDs != 0, "ppid %d  uid %d", t.Linux.Ppid, t.Linux.UID)
	if n := len(t.Threads); p&kcdata.TaskHasThreadCount != 0 && t.Linux.NrThreads > uint32(n) {
		parts.Add("%d of %d threads in the file", n, t.Linux.NrThreads)
	} else {
		parts.If(n != 1, "%s", show.Count(n, "thread"))
	}
	if m := t.Memory; m != nil {
		parts.Add("RSS %s", show.Size(m.RssFile+m.RssAnon+m.RssShmem))
	}
	parts.Add("%s", program(t))
	parts.If(t.Cgroup != "" && t.Cgroup != "/", "cgroup %s", show.Clean(t.Cgroup))
	return parts.Join("  ")
}

// maxProgram bounds a command line in the task line.
const maxProgram = 100

// program says what a task executes: the command line,
// else the path of the executable, else the name that the kernel keeps.
func program(t *kcdata.Task) string {
	switch {
	case len(t.Cmdline) > 0:
		return show.Fit(show.Clean(strings.Join(t.Cmdline, " ")), maxProgram)
	case t.ExePath != "":
		return show.Fit(show.Clean(t.ExePath), maxProgram)
	case t.Exe != nil:
		return show.Clean(t.Exe.FileName())
	}
	return ""
}

// groupText writes a group: which threads, their state, age and system call, then the
// stack.
func (v *view) groupText(l *lines, t *taskView, g *group) {
	state := show.Parts{g.stateAge(g.state.Words)}
	state.Add("%s", g.note)
	calls := v.syscalls(g)
	state.If(calls != "", "in %s", calls)
	state.Add("%s", v.waitsFor(g))
	color := ""
	if g.state.Class == model.Blocked {
		color = show.Red
	}
	l.colored(color, func() { l.Line("    %s: %s", g.threadText(t.Task), state.Join(", ")) })
	v.stackText(l, g)
}

// stateAge says in words what a group does, on which CPUs if it runs, and for how long.
func (g *group) stateAge(words string) string {
	if g.state.Class == model.Running {
		words += " on " + account.CPUList(g.numbers(func(t *threadView) uint64 { return uint64(t.Linux.CPU) }))
	}
	return words + account.Age(g.age)
}

// syscalls names the system calls that a group's threads are in, at most three.
func (v *view) syscalls(g *group) string {
	var names []string
	for _, t := range g.threads {
		if t.Syscall == nil || t.Syscall.Nr < 0 || t.Linux.Present&kcdata.ThreadUserMode != 0 {
			continue
		}
		name := sysno.Format(v.s.Arch, model.CallABI(t.Thread), t.Syscall.Nr)
		if slices.Contains(names, name) {
			continue
		}
		if len(names) == 3 {
			return strings.Join(names, ", ") + ", ..."
		}
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}

// maxTidRuns bounds the list of thread ids of a group.
const maxTidRuns = 8

// threadText names the threads of a group: how many, one example by name, then
// all ids.
func (g *group) threadText(t *kcdata.Task) string {
	first := g.threads[0]
	s := fmt.Sprintf("tid %d", first.ID)
	if first.IsIdle() {
		s = fmt.Sprintf("idle thread of CPU %d", uint32(first.ID))
	}
	if first.Name != "" && first.Name != t.Name {
		s += ` "` + show.Clean(first.Name) + `"`
	}
	if n := len(g.threads); n > 1 && first.IsIdle() {
		s = fmt.Sprintf("%d idle threads of CPUs", n)
	} else if n > 1 {
		s = fmt.Sprintf("%d threads, e.g. %s (tids %s)", n, s, show.Ranges(g.numbers(func(t *threadView) uint64 { return t.ID }), maxTidRuns))
	}
	return s
}
