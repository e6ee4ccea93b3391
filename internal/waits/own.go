package waits

import (
	"fmt"
	"slices"

	"stackshot/internal/model"
	"stackshot/kcdata"
)

// forOwn names the threads of its own process, or of its own pid namespace, for which w's thread waits: all of them have to
// end; and who has to take note that one did. No two threads of a process, or of a namespace, wait for all others of it:
// in a file that says so the first one counts.
func (f *finder) forOwn(w *Wait) {
	switch w.Kind {
	case Threads:
		if w.State.Class != model.Blocked {
			w.Kind = Completion // the program that takes the core dump has not ended
		} else if f.first(w.Task, 0) {
			f.otherThreads(w)
		}
	case Workers:
		f.workersOf(w)
	case Namespace:
		if n := len(w.Thread.NS); n > 0 && f.first(nil, w.Thread.NS[n-1].Inode) {
			f.inNamespace(w, w.Thread.NS[n-1].Inode)
		}
	case CoreDump:
		if t := f.dumper(w.Task); t != nil && t != w.Thread {
			w.Owners = []Owner{member{w.Task, t}.owner(Dumps)}
		} else {
			w.Kind = Other
		}
	}
}

// group is a process, or a pid namespace by its inode.
type group struct {
	task  *kcdata.Task
	inode uint32
}

// first reports whether nobody has waited for all others of these.
func (f *finder) first(task *kcdata.Task, inode uint32) bool {
	k := group{task, inode}
	seen := f.waitedFor[k]
	f.waitedFor[k] = true
	return !seen
}

// otherThreads are for an execve, or a core dump that begins. The kernel reaps threads that end at once, but for traced ones.
func (f *finder) otherThreads(w *Wait) {
	var all []member
	for _, t := range w.Task.Threads {
		kind, _ := match(f.namesOf(t))
		switch ended := model.StateOf(t).Class == model.Zombie; {
		case t == w.Thread || kind == CoreDump:
		case !ended:
			all = append(all, member{w.Task, t})
		case t.ID != w.Task.ID:
			w.note(fmt.Sprintf("thread %d has ended, and its tracer, which is not known, has not reaped it", t.ID))
		}
	}
	w.join(all)
}

// workersOf are the workers of the io_uring of w's thread. They have its number, which is of the first pid namespace.
func (f *finder) workersOf(w *Wait) {
	if f.workers[w.Task] == nil {
		f.workers[w.Task] = map[string][]member{}
		for _, m := range living(w.Task) {
			f.workers[w.Task][m.thread.Name] = append(f.workers[w.Task][m.thread.Name], m)
		}
	}
	w.join(f.workers[w.Task][fmt.Sprint("iou-wrk-", tidOf(w.Thread))])
}

// inNamespace is for the first process of a pid namespace, which ends last and reaps its orphans.
func (f *finder) inNamespace(w *Wait, inode uint32) {
	in := func(t *kcdata.Thread) bool {
		return slices.ContainsFunc(t.NS, func(n kcdata.LinuxThreadNS) bool { return n.Inode == inode })
	}
	var all []member
	for _, task := range f.s.Tasks {
		leader := leaderOf(task)
		if task == w.Task || leader == nil || !in(leader) {
			continue
		}
		if in := living(task); len(in) > 0 {
			all = append(all, in...)
			continue
		}
		if m, ok := f.byTid[task.Linux.Ppid]; ok && m.task != w.Task && !in(m.thread) && len(w.Owners) < maxOwners { // else it has to end, too
			w.Owners = append(w.Owners, m.owner(Reaps))
			w.note(fmt.Sprintf("%s [%d] has ended, and %s [%d] has not reaped it", task.Name, task.ID, m.task.Name, m.task.ID))
		}
	}
	w.join(all)
}

// join names those for whose end w's thread waits, those in D first. That some are not named makes nobody stuck.
func (w *Wait) join(all []member) {
	more := 0
	for _, inD := range []bool{true, false} {
		for _, m := range all {
			switch {
			case inD != (model.StateOf(m.thread).Class == model.Blocked):
			case len(w.Owners) < maxOwners:
				w.Owners = append(w.Owners, m.owner(Joined))
			default:
				more++
			}
		}
	}
	if more > 0 {
		w.note(fmt.Sprintf("it waits for the end of %d more threads", more))
	}
}

// living are the threads of task that have not ended.
func living(task *kcdata.Task) (out []member) {
	for _, t := range task.Threads {
		if model.StateOf(t).Class != model.Zombie {
			out = append(out, member{task, t})
		}
	}
	return out
}

// dumper is the thread that takes its process's core dump; nil: none does.
func (f *finder) dumper(task *kcdata.Task) *kcdata.Thread {
	t, known := f.dumpers[task]
	if !known {
		i := slices.IndexFunc(task.Threads, func(t *kcdata.Thread) bool {
			return slices.ContainsFunc(t.Kernel, func(addr uint64) bool {
				sym, ok := f.s.Symbols.Name(addr)
				name := plain(sym.Name)
				return ok && (name == "do_coredump" || name == "vfs_coredump")
			})
		})
		if i >= 0 {
			t = task.Threads[i]
		}
		f.dumpers[task] = t
	}
	return t
}
