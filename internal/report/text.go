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
	for _, p := range v.parts() {
		if l.gone() {
			break
		}
		if l.room.full() {
			l.room.Threads += p.threads()
			continue
		}
		v.title(l, p)
		for _, e := range p.entries {
			v.entryText(l, e)
		}
	}
	v.footer(l)
	return l.close()
}

// gone reports whether the writer has failed: nobody reads the rest.
func (l *lines) gone() bool {
	_, err := l.w.Write(nil)
	return err != nil
}

// title writes the heading of a section. That of a control group counts its threads by state.
func (v *view) title(l *lines, p *part) {
	l.Line("")
	s := fmt.Sprintf("== %s: %s, %s in all", p.title, show.Count(p.tasks(), "task"), show.Count(p.threads(), "thread"))
	if v.o.GroupBy == ByCgroup {
		s += ": " + p.states()
	}
	l.colored(show.Bold, func() { l.Words("", "%s", s) })
}

// states counts the threads of a section by class.
func (p *part) states() string {
	var classes [model.ClassCount]int
	for _, e := range p.entries {
		for _, g := range e.groups {
			classes[g.state.Class] += len(g.threads) // the threads of a group are in the same state
		}
	}
	var parts show.Parts
	for c, n := range classes {
		parts.If(n > 0, "%d %s", n, model.Class(c).Many())
	}
	return parts.Join(", ")
}

func (v *view) entryText(l *lines, e *entry) {
	switch {
	case l.gone():
	case l.room.full():
		l.room.Threads += e.threads()
	case e.task == nil:
		v.sharedText(l, e.groups[0])
	default:
		v.taskText(l, e)
	}
}

// taskText writes one task: its name and figures, then its groups of threads.
func (v *view) taskText(l *lines, e *entry) {
	t := e.task
	l.Line("")
	l.Line("%s", taskLine(t.Task))
	for _, f := range unread(t.Task) {
		l.Line("    not read: %s", f)
	}
	switch {
	case len(t.Threads) > 0:
	case v.s.Delta && !v.s.Partial:
		l.Line("    no thread of it ran since the stackshot before")
	default:
		l.Line("    no threads in the file")
	}
	for _, g := range e.groups {
		if l.room.full() {
			l.room.Threads += len(g.threads)
			continue
		}
		v.groupText(l, t, g)
	}
	if n := t.shown - e.threads(); n > 0 {
		l.Line("    %s in groups of several tasks", show.Count(n, "more thread"))
	}
	if t.hidden > 0 {
		l.Line("    %s not listed here (idle or our own)", show.Count(t.hidden, "more thread"))
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

// groupText writes a group of one task: which threads, their state, age and system call, then
// the stack.
func (v *view) groupText(l *lines, t *taskView, g *group) {
	color := ""
	if g.state.Class == model.Blocked {
		color = show.Red
	}
	who, apart := g.threadText(t.Task)
	l.colored(color, func() { l.Line("    %s: %s", who, v.doing(g)) })
	if apart != "" {
		l.Words("        ", "%s", apart)
	}
	v.stackText(l, g)
}

// stateAge says in words what a group does, on which CPUs if it runs, and for how long.
func (g *group) stateAge(words string) string {
	if g.state.Class == model.Running && g.threads[0].HasLinux {
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

// maxTidRuns is how many runs of thread ids stand in the line of a group. More have lines of
// their own.
const maxTidRuns = 8

// threadText names the threads of a group: how many, one example by name, then all ids, or apart
// from the line if they are many.
func (g *group) threadText(t *kcdata.Task) (s, apart string) {
	first := g.threads[0]
	s = fmt.Sprintf("tid %d", first.ID)
	if first.IsIdle() {
		s = fmt.Sprintf("idle thread of CPU %d", uint32(first.ID))
	}
	if first.Name != "" && first.Name != t.Name {
		s += ` "` + show.Clean(first.Name) + `"`
	}
	n, tids := len(g.threads), g.numbers(func(t *threadView) uint64 { return t.ID })
	switch runs := show.Ranges(tids, len(tids)); {
	case n > 1 && first.IsIdle():
		s = fmt.Sprintf("%d idle threads of CPUs", n)
	case n > 1 && strings.Count(runs, ",") < maxTidRuns:
		s = fmt.Sprintf("%d threads, e.g. %s (tids %s)", n, s, runs)
	case n > 1:
		s, apart = fmt.Sprintf("%d threads, e.g. %s", n, s), "tids "+allRanges(tids)
	}
	return s, apart
}
