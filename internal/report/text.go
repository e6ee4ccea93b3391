package report

import (
	"fmt"
	"io"
	"strings"

	"stackshot/internal/account"
	"stackshot/internal/model"
	"stackshot/internal/show"
	"stackshot/internal/sysno"
	"stackshot/kcdata"
)

// Text writes the report people read: what limits trust, what stands out, then
// every task in sections, most interesting first. Errors are the writer's.
func Text(w io.Writer, s *kcdata.Snapshot, o Options) error {
	v := newView(s, o)
	l := newLines(w, o)
	v.header(l)
	v.digest(l)
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
	l.colored(bold, func() {
		l.Line("== %s: %s, %s in all", sectionNames[n], show.Count(tasks, "task"), show.Count(threads, "thread"))
	})
}

// taskText writes one task: who it is, then its groups of threads.
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
	if hidden := len(t.Threads) - t.shown; hidden > 0 {
		l.Line("    %s not listed here (idle or our own)", show.Count(hidden, "more thread"))
	}
}

func taskLine(t *kcdata.Task) string {
	parts := []string{account.Task(t)}
	p := t.Linux.Present
	switch {
	case t.Transitioning:
		parts = append(parts, "exiting")
	case t.IsKernel():
		parts = append(parts, "kernel thread")
	}
	if p&kcdata.TaskInExec != 0 {
		parts = append(parts, "inside execve")
	}
	if p&kcdata.TaskCoreDumping != 0 {
		parts = append(parts, "dumping core")
	}
	if t.IsSelf() {
		parts = append(parts, "our own")
	}
	if p&kcdata.TaskHasIDs != 0 {
		parts = append(parts, fmt.Sprintf("ppid %d", t.Linux.Ppid), fmt.Sprintf("uid %d", t.Linux.UID))
	}
	if n := len(t.Threads); p&kcdata.TaskHasThreadCount != 0 && t.Linux.NrThreads > uint32(n) {
		parts = append(parts, fmt.Sprintf("%d of %d threads in the file", n, t.Linux.NrThreads))
	} else if n != 1 {
		parts = append(parts, show.Count(n, "thread"))
	}
	if m := t.Memory; m != nil {
		parts = append(parts, "RSS "+show.Size(m.RssFile+m.RssAnon+m.RssShmem))
	}
	if s := program(t); s != "" {
		parts = append(parts, s)
	}
	if t.Cgroup != "" && t.Cgroup != "/" {
		parts = append(parts, "cgroup "+show.Clean(t.Cgroup))
	}
	return strings.Join(parts, "  ")
}

// maxProgram bounds a command line in the task line.
const maxProgram = 100

// program is the best there is about what a task executes: its command line,
// else the path of its executable, else the name the kernel keeps.
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

// groupText writes a group: which threads, state, age, system call, then the
// stack.
func (v *view) groupText(l *lines, t *taskView, g *group) {
	title := func() { l.Line("    %s: %s", g.threadText(t.Task), v.stateText(g, g.state.Words)) }
	if g.state.Class == model.Blocked {
		l.colored(red, title)
	} else {
		title()
	}
	v.stackText(l, g)
}

// stateText says in words what a group does, and for how long.
func (v *view) stateText(g *group, words string) string {
	s := v.stateAge(g, words)
	if g.note != "" {
		s += ", " + g.note
	}
	if calls := v.syscalls(g); calls != "" {
		s += ", in " + calls
	}
	return s
}

// stateAge is the first part of stateText.
func (v *view) stateAge(g *group, words string) string {
	if g.state.Class == model.Running {
		words += " on " + account.CPUList(g.cpus())
	}
	return words + ageText(g.age)
}

// ageText says for how long, behind what; nothing where that is not known.
func ageText(a model.Age) string {
	switch {
	case !a.Known:
		return ""
	case a.About:
		return " for about " + show.Duration(a.Ns)
	}
	return " for at most " + show.Duration(a.Ns)
}

// syscalls names the system calls a group's threads are in, three at most.
func (v *view) syscalls(g *group) string {
	var names []string
	type call struct {
		abi sysno.ABI
		nr  int64
	}
	seen := map[call]bool{}
	for _, t := range g.threads {
		if t.Syscall == nil || t.Syscall.Nr < 0 || t.Linux.Present&kcdata.ThreadUserMode != 0 {
			continue
		}
		c := call{callABI(t.Thread), t.Syscall.Nr}
		if seen[c] {
			continue
		}
		seen[c] = true
		if len(names) == 3 {
			return strings.Join(names, ", ") + ", ..."
		}
		names = append(names, sysno.Format(v.s.Arch, c.abi, c.nr))
	}
	return strings.Join(names, ", ")
}

// callABI is whose numbers a thread's system call has. A 32-bit thread has no others;
// a 64-bit one may make such calls too.
func callABI(t *kcdata.Thread) sysno.ABI {
	switch {
	case t.Linux.Present&kcdata.ThreadCompatCall != 0, t.UserWalk != nil && t.UserWalk.Flags&kcdata.UserCompat != 0:
		return sysno.Compat
	case t.Linux.Present&kcdata.ThreadCallUnsure != 0:
		return sysno.Unknown
	}
	return sysno.Native
}

// maxTidRuns bounds the list of thread ids of a group.
const maxTidRuns = 8

// threadText names the threads of a group: how many, the example by name, then
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
		s = fmt.Sprintf("%d threads, e.g. %s (tids %s)", n, s, show.Ranges(g.ids(), maxTidRuns))
	}
	return s
}

// cpus returns the CPUs a group's threads are on.
func (g *group) cpus() []uint64 {
	var out []uint64
	for _, t := range g.threads {
		out = append(out, uint64(t.Linux.CPU))
	}
	return out
}
