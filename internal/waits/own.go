package waits

import (
	"slices"
	"strings"

	"stackshot/internal/model"
	"stackshot/kcdata"
)

// own names the threads of its own process, or of its own pid namespace, for which w's thread waits: all of them have to end.
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
		for _, task := range f.s.Tasks {
			if task != w.Task {
				f.join(w, task, func(t *kcdata.Thread) bool {
					return slices.ContainsFunc(t.NS, func(n kcdata.LinuxThreadNS) bool { return n.Inode == inode })
				})
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
		if t != w.Thread && model.StateOf(t).Class != model.Zombie && which(t) {
			w.Owners = append(w.Owners, member{task, t}.owner(Joined))
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
