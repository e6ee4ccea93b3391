package waits

import (
	"fmt"

	"stackshot/internal/model"
	"stackshot/internal/sysno"
	"stackshot/kcdata"
)

// Arguments of wait4(2), waitpid(2) and waitid(2) (include/uapi/linux/wait.h).
const (
	pAll  = 0
	pPid  = 1
	pPgid = 2

	wNoThread = 0x20000000 // only children of this thread
	wClone    = 0x80000000 // only children that end with another signal than SIGCHLD
)

// asked is which children a call waits for.
type asked struct {
	all     bool
	pid     uint32 // one child, or a traced thread
	group   uint32 // a process group; ownGroup: the caller's
	own     bool
	unclear bool // the file does not say which: any of them
}

// child names the children that w's thread waits for, and the threads that its process traces:
// a tracer waits for them in the same calls.
func (f *finder) child(w *Wait) {
	a := f.askedFor(w.Thread)
	if a.unclear {
		w.Confidence = Likely
		w.note("which of its children it waits for is not in the file")
	}
	var found []member
	switch {
	case a.pid != 0:
		if m, ok := f.numbered(w.Thread, a.pid); ok && f.concerns(m, w.Task) {
			found = []member{m}
		}
	case a.own:
		found = f.groups[[2]uint32{uint32(w.Task.ID), w.Task.Linux.Pgid}]
	case a.group != 0:
		if m, ok := f.numbered(w.Thread, a.group); ok {
			found = f.groups[[2]uint32{uint32(w.Task.ID), uint32(m.task.ID)}]
		} else {
			w.Confidence = Likely
			w.note("the leader of the process group that it waits for is not in the file")
		}
	default:
		found = f.children[uint32(w.Task.ID)]
		if traced := f.traced[uint32(w.Task.ID)]; len(found) <= maxOwners && len(traced) > 0 { // else it is long enough
			found = append(found[:len(found):len(found)], traced[:min(len(traced), maxOwners+1)]...)
		}
	}
	f.nameChildren(w, found)
}

func (f *finder) nameChildren(w *Wait, found []member) {
	switch {
	case len(found) == 0:
		w.note("the file has none of the children that it waits for")
		return
	case len(found) > maxOwners:
		w.note(fmt.Sprintf("any of more than %d children ends the wait, so none is named", maxOwners))
		return
	}
	seen := make(map[*kcdata.Thread]bool, len(found))
	for _, m := range found {
		if m.thread != nil && seen[m.thread] {
			continue // a child that it traces
		}
		seen[m.thread] = true
		w.Owners = append(w.Owners, m.owner(Child))
	}
	w.AnyOwner = len(w.Owners) > 1
	if w.AnyOwner && !f.whole() {
		w.Confidence = Likely
		w.note("the file may lack some of its children")
	}
}

// whole reports whether the file has all tasks of the recorded namespace.
func (f *finder) whole() bool { return f.s.Request == "" && len(f.s.LeftOut) == 0 }

// numbered is the thread with this number in the pid namespace of t.
func (f *finder) numbered(t *kcdata.Thread, n uint32) (member, bool) {
	if len(t.NS) == 0 {
		m, ok := f.byTid[n]
		return m, ok
	}
	m, ok := f.deeper[number{t.NS[len(t.NS)-1].Inode, n}]
	return m, ok
}

// concerns reports whether task may wait for m: its child, or a thread that it traces.
func (f *finder) concerns(m member, task *kcdata.Task) bool {
	if m.task.HasLinux && m.task.Linux.Ppid == uint32(task.ID) {
		return true
	}
	return isTracee(m.thread.Wait) && m.thread.Wait.PeerTgid == uint32(task.ID)
}

// askedFor reads the arguments of t's system call. A redacted file has none.
func (f *finder) askedFor(t *kcdata.Thread) asked {
	if t.Syscall == nil || f.s.Machine.Redacted != 0 {
		return asked{unclear: true}
	}
	name, _ := sysno.Name(f.s.Arch, model.CallABI(t), t.Syscall.Nr)
	args := &t.Syscall.Args
	var a asked
	switch name {
	case "wait4", "waitpid":
		switch pid := int32(args[0]); {
		case pid > 0:
			a.pid = uint32(pid)
		case pid == -1:
			a.all = true
		case pid == 0:
			a.own = true
		default:
			a.group = uint32(-int64(pid))
		}
		a.unclear = args[2]&(wNoThread|wClone) != 0
	case "waitid":
		switch id := uint32(args[1]); {
		case uint32(args[0]) == pAll:
			a.all = true
		case uint32(args[0]) == pPid:
			a.pid = id
		case uint32(args[0]) == pPgid && id == 0:
			a.own = true
		case uint32(args[0]) == pPgid:
			a.group = id
		default: // P_PIDFD: a descriptor
			a.unclear = true
		}
		a.unclear = a.unclear || args[3]&(wNoThread|wClone) != 0
	default:
		a.unclear = true
	}
	return a
}
