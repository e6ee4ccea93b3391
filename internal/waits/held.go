package waits

import (
	"fmt"

	"stackshot/internal/model"
	"stackshot/kcdata"
)

// cpu is for a runnable thread; nil if it does not wait, or the file does not say so. Who ran
// on its CPU keeps it waiting. A thread that one of our own threads displaced for the stop
// was running.
func (f *finder) cpu(w *Wait) *Wait {
	l := &w.Thread.Linux
	if w.State.Since != model.SinceQueued || l.Present&kcdata.ThreadDisplaced != 0 {
		return nil
	}
	w.Kind = CPU
	if m, ok := f.onCPU[l.CPU]; ok && m.thread != w.Thread {
		w.Owners = []Owner{m.owner(Runs)}
	}
	return w
}

// held is for the states stopped, traced and frozen. Who sent the signal that stopped a thread
// is recorded nowhere.
func (f *finder) held(w *Wait) {
	state := w.Thread.Linux.State
	switch {
	case state&kcdata.StateFrozen != 0:
		w.Kind = Frozen
	case state&kcdata.StateTraced != 0:
		w.Kind = Traced
		f.tracer(w)
	default:
		w.Kind = Stopped
	}
}

func (f *finder) tracer(w *Wait) {
	if r := w.Thread.Wait; isTracee(r) {
		w.own(f.find(r.PeerTid, r.PeerTgid, r.PeerStart, Tracer))
	}
}

// frozen is for a thread in a frozen control group of version 2, which sleeps interruptibly.
// The kernel sets the bit also for the length of a stop, a ptrace stop and a vfork wait
// (cgroup_enter_frozen), so these come before.
func (f *finder) frozen(w *Wait, names []*marks) bool {
	r := w.Thread.Wait
	if r == nil || r.Flags&kcdata.WaitFrozen == 0 || w.State.Class == model.Blocked {
		return false
	}
	if kind, ok := match(names); ok && kind != Frozen {
		return false
	}
	w.Kind = Frozen
	return true
}

// vfork is for a thread of which a child says that it waits for it. The child's word alone is
// old as soon as the wait was interrupted by a fatal signal, so the stack must not say
// otherwise.
func (f *finder) vfork(w *Wait, names []*marks) bool {
	children := f.vforked[w.Thread]
	if len(children) == 0 {
		return false
	}
	if kind, ok := match(names); ok && kind != Vfork || !ok && len(names) > 0 {
		return false
	}
	w.Kind = Vfork
	for _, m := range children[:min(len(children), maxOwners)] {
		w.Owners = append(w.Owners, m.owner(Execs))
	}
	return true
}

// find is the owner with this number in the recorded pid namespace. Tid 0 is a thread outside
// of it. If the file has the number with another start time, it is not known who the owner
// is, and the note says so.
func (f *finder) find(tid, pid uint32, start uint64, r Relation) (o Owner, note string) {
	if m, ok := f.started(tid, start); ok {
		return m.owner(r), ""
	}
	o = Owner{Tid: tid, Pid: pid, Relation: r}
	if tid == 0 {
		return o, ""
	}
	if _, ok := f.byTid[tid]; ok {
		return Owner{}, fmt.Sprintf("thread %d of this file is not the one that was recorded as its owner", tid)
	}
	return o, ""
}

// own names o, or says why nobody is named.
func (w *Wait) own(o Owner, note string) {
	if note != "" {
		w.note(note)
		return
	}
	w.Owners = append(w.Owners, o)
}

// maxOwners bounds the owners of one wait. Where there are more, none is named: who acts first
// is not to be foreseen, and a hostile file may have a million.
const maxOwners = 256
