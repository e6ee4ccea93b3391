package waits

import (
	"stackshot/internal/model"
	"stackshot/kcdata"
)

// member is a thread with its task.
type member struct {
	task   *kcdata.Task
	thread *kcdata.Thread
}

// number is a thread's number in a pid namespace deeper than the recorded one.
type number struct{ inode, tid uint32 }

// index finds the threads of a snapshot. If a hostile file has a number twice, the first
// counts, and an owner's start time decides whether it is the one that was meant.
type index struct {
	threads  int
	byTid    map[uint32]member
	byPid    map[uint32]*kcdata.Task // by tgid
	deeper   map[number]member
	onCPU    map[uint32]member           // what ran on a CPU when the stop took it
	children map[uint32][]member         // by the parent's tgid, each by its leader
	groups   map[[2]uint32][]member      // likewise, by the parent's tgid and the process group
	traced   map[uint32][]member         // by the tracer's tgid
	vforked  map[*kcdata.Thread][]member // by the thread that waits in vfork
}

func newIndex(s *kcdata.Snapshot) index {
	x := index{threads: s.ThreadCount(), deeper: map[number]member{}, onCPU: map[uint32]member{}}
	x.byTid, x.byPid = make(map[uint32]member, x.threads), make(map[uint32]*kcdata.Task, len(s.Tasks))
	for _, task := range s.Tasks {
		if task.ID != 0 {
			once(x.byPid, uint32(task.ID), task)
		}
		for _, t := range task.Threads {
			x.add(member{task, t})
		}
	}
	x.children, x.groups = map[uint32][]member{}, map[[2]uint32][]member{}
	x.traced, x.vforked = map[uint32][]member{}, map[*kcdata.Thread][]member{}
	for _, task := range s.Tasks {
		x.family(task)
	}
	x.ran(s)
	return x
}

func (x *index) add(m member) {
	t := m.thread
	if t.IsIdle() {
		return
	}
	once(x.byTid, tidOf(t), m)
	for _, ns := range t.NS {
		once(x.deeper, number{ns.Inode, ns.Tid}, m)
	}
	if l := &t.Linux; t.HasLinux && l.Present&kcdata.ThreadHasOnCPU != 0 && l.OnCPU != 0 {
		once(x.onCPU, l.CPU, m)
	}
}

// once sets at[k] unless it is set.
func once[K comparable, V any](at map[K]V, k K, v V) {
	if _, ok := at[k]; !ok {
		at[k] = v
	}
}

// family notes whose child task is, and who traces its threads or waits in vfork for them.
func (x *index) family(task *kcdata.Task) {
	if l := &task.Linux; task.HasLinux && l.Present&kcdata.TaskHasIDs != 0 && task.ID != 0 {
		m := member{task, leaderOf(task)}
		x.children[l.Ppid] = append(x.children[l.Ppid], m)
		x.groups[[2]uint32{l.Ppid, l.Pgid}] = append(x.groups[[2]uint32{l.Ppid, l.Pgid}], m)
	}
	for _, t := range task.Threads {
		w := t.Wait
		if w == nil || w.PeerTid == 0 {
			continue
		}
		if isTracee(w) {
			x.traced[w.PeerTgid] = append(x.traced[w.PeerTgid], member{task, t})
		}
		if w.Flags&kcdata.WaitVfork == 0 || task.IsKernel() {
			continue // each kernel thread points at a completion in the place of vfork's
		}
		if peer, ok := x.started(w.PeerTid, w.PeerStart); ok {
			x.vforked[peer.thread] = append(x.vforked[peer.thread], member{task, t})
		}
	}
}

// isTracee reports whether the peer of w is a tracer. Where both are known, the peer is who waits
// in vfork.
func isTracee(w *kcdata.LinuxWait) bool {
	return w != nil && w.PeerTid != 0 && w.Flags&(kcdata.WaitTraced|kcdata.WaitVfork) == kcdata.WaitTraced
}

// ran takes what the stop displaced from the records of CPUs where no thread says it.
func (x *index) ran(s *kcdata.Snapshot) {
	for i := range s.CPUs {
		c := &s.CPUs[i]
		if c.Flags&kcdata.CPURanKnown == 0 || c.Flags&kcdata.CPUIdle != 0 || c.RanTid == 0 {
			continue
		}
		if m, ok := x.byTid[c.RanTid]; ok {
			once(x.onCPU, c.CPU, m)
		}
	}
}

// started is the thread with this number and start_boottime.
func (x *index) started(tid uint32, start uint64) (member, bool) {
	m, ok := x.byTid[tid]
	ok = ok && start != 0 && m.thread.Linux.Present&kcdata.ThreadHasStart != 0 && m.thread.Linux.StartBoottime == start
	return m, ok
}

// tidOf is a thread's number in the recorded pid namespace.
func tidOf(t *kcdata.Thread) uint32 {
	if t.HasLinux && t.Linux.Tid != 0 {
		return t.Linux.Tid
	}
	return uint32(t.ID)
}

// leaderOf is the thread that stands for task where its end is waited for: the leader or, if
// that has ended, the first that has not; nil if the file has no thread of it.
func leaderOf(task *kcdata.Task) *kcdata.Thread {
	var ended *kcdata.Thread
	for _, t := range task.Threads {
		if model.StateOf(t).Class != model.Zombie {
			return t
		}
		if ended == nil {
			ended = t
		}
	}
	return ended
}

// owner is m as an owner.
func (m member) owner(r Relation) Owner {
	o := Owner{Task: m.task, Thread: m.thread, Tid: uint32(m.task.ID), Pid: uint32(m.task.ID), Relation: r}
	if m.thread != nil {
		o.Tid = tidOf(m.thread)
	}
	return o
}
