package waits

import (
	"fmt"
	"slices"
	"strings"

	"stackshot/internal/model"
	"stackshot/kcdata"
)

// own names the threads of its own process, or of its own pid namespace, for which w's thread waits: all of them have to
// end; and who has to take note that one did.
func (f *finder) own(w *Wait) {
	switch w.Kind {
	case Threads:
		if w.State.Class != model.Blocked {
			w.Kind = Completion // the program that takes the core dump has not ended
			return
		}
		f.join(w, w.Task, func(t *kcdata.Thread) bool { kind, _ := match(f.namesOf(t)); return kind != CoreDump })
	case Workers:
		f.join(w, w.Task, func(t *kcdata.Thread) bool { return strings.HasPrefix(t.Name, "iou-wrk-") })
	case Namespace:
		if len(w.Thread.NS) == 0 {
			return
		}
		inode := w.Thread.NS[len(w.Thread.NS)-1].Inode
		in := func(t *kcdata.Thread) bool {
			return slices.ContainsFunc(t.NS, func(n kcdata.LinuxThreadNS) bool { return n.Inode == inode })
		}
		for _, task := range f.s.Tasks {
			if task == w.Task {
				continue
			}
			f.join(w, task, in)
			if leader := leaderOf(task); leader != nil && model.StateOf(leader).Class == model.Zombie && in(leader) {
				if m, ok := f.byTid[task.Linux.Ppid]; ok && m.task != w.Task && !in(m.thread) { // else it has to end, too
					w.Owners = append(w.Owners, m.owner(Reaps))
					w.note(fmt.Sprintf("%s [%d] has ended, and %s [%d] has not reaped it", task.Name, task.ID, m.task.Name, m.task.ID))
				}
			}
		}
	case CoreDump:
		i := slices.IndexFunc(w.Task.Threads, func(t *kcdata.Thread) bool { return t != w.Thread && f.dumps(t) })
		if i < 0 {
			w.Kind = Other
			return
		}
		w.Owners = []Owner{member{w.Task, w.Task.Threads[i]}.owner(Dumps)}
	}
}

// join adds to w's owners those living threads of task that which names, but for its own.
func (f *finder) join(w *Wait, task *kcdata.Task, which func(*kcdata.Thread) bool) {
	for _, t := range task.Threads {
		switch ended := model.StateOf(t).Class == model.Zombie; {
		case t == w.Thread || !which(t):
		case !ended:
			w.Owners = append(w.Owners, member{task, t}.owner(Joined))
		case task == w.Task && t.ID != task.ID: // the kernel reaps all others at once
			w.note(fmt.Sprintf("thread %d has ended, and its tracer, which is not known, has not reaped it", t.ID))
		}
	}
}

// dumps reports whether t writes its process's core dump.
func (f *finder) dumps(t *kcdata.Thread) bool {
	return slices.ContainsFunc(t.Kernel, func(addr uint64) bool {
		sym, ok := f.s.Symbols.Name(addr)
		name := plain(sym.Name)
		return ok && (name == "do_coredump" || name == "vfs_coredump")
	})
}
