package waitgraph

import (
	"slices"
	"sort"

	"stackshot/internal/model"
	"stackshot/internal/waits"
	"stackshot/kcdata"
)

// Pools take turns: one member waits for the next connection, request or job and has a lock
// meanwhile, and the others stand in line for that lock (Leader/Followers). Nothing hangs. A program
// that forgot to give up its lock, or waits for an answer with it, looks the same to the kernel. What
// tells them apart is what the holder waits for, and the stacks: in a pool the holder is in
// the function that took the lock, called by the same functions, as all who stand in line are.

// findLines fills g.lines, in the order of their first waiters: a lock of which nothing is known is waited for by one.
func (g *graph) findLines() {
	at := map[waits.Resource]int{}
	for v := range g.waiting {
		w := g.nodes[v].wait
		if !isLock(w.Kind) {
			continue
		}
		i, there := at[w.Resource]
		if !there || w.Resource == (waits.Resource{}) {
			i = len(g.lines)
			at[w.Resource], g.lines = i, append(g.lines, nil)
		}
		g.lines[i] = append(g.lines[i], v)
	}
}

// findTurns fills g.turn and g.pools.
func (g *graph) findTurns() {
	g.turn = make([]bool, g.waiting)
	for _, who := range g.lines {
		if g.nodes[who[0]].wait.Kind.IsOnce() {
			continue // who initializes leads nobody
		}
		leaders := g.leaders(who)
		if leaders == nil || !g.newsMayCome(who, leaders) {
			continue
		}
		for _, v := range who {
			g.turn[v] = true
		}
		old := slices.DeleteFunc(slices.Clone(who), func(v int32) bool { return !g.old(g.nodes[v].wait) })
		if len(old) > 0 {
			g.pools = append(g.pools, g.convoyOf(old))
		}
	}
	sortConvoys(g.pools)
}

// leaders are the threads that lead the pool in which who, all that wait for one lock, stand in line; nil: it
// is no pool's.
func (g *graph) leaders(who []int32) map[*kcdata.Thread]bool {
	all := map[*kcdata.Thread]bool{}
	named := who[max(0, slices.IndexFunc(who, func(v int32) bool { return len(g.edgesOf(v)) > 0 }))]
	for _, v := range who {
		by := v
		if len(g.edgesOf(v)) == 0 {
			by = named // who has the lock was read for some of them
		}
		if !g.addLeaders(v, by, all) {
			return nil
		}
	}
	return all
}

// addLeaders adds those behind whom v stands in line, by the owners of by's wait for the same lock, and reports
// whether these are all who have the lock.
// Whoever waits for the next connection leads if stacks do not tell; or if the lock is a file's, and it is the one
// thread of its process. Of a lock of which nobody is known to have it a thread of v's process that is in
// the same function may have it, if it accepts, or no other waits for that kind of thing: others wait for something else. Locks that never keep
// their owner may have pools of one, for which nobody stands in line, so there any may lead.
// Java's functions have no names, so there threads do, and parked ones have no monitor.
func (g *graph) addLeaders(v, by int32, all map[*kcdata.Thread]bool) bool {
	w, held := g.nodes[v].wait, false
	at := g.locksAt(w)
	for _, e := range g.edgesOf(by) {
		o := g.nodes[by].wait.Owners[e.via]
		if o.Relation != waits.Holds {
			continue
		}
		if held = true; isAbsent(o) || !related(w.Task, o.Task) {
			return false
		}
		l := g.loopsOf(e.node)
		if alone := w.Kind == waits.FileLock && len(o.Task.Threads) == 1; l.accepts != nil && (alone || at == nil || len(l.accepts.User) == 0) {
			all[l.accepts] = true
			continue
		}
		in := l.in(w, at)
		if len(in) == 0 {
			return false
		}
		if !all[in[0]] { // else all of them are there
			for _, th := range in {
				all[th] = true
			}
		}
	}
	if held || len(g.edgesOf(by)) > 0 {
		return held
	}
	var in []*kcdata.Thread
	if l := g.loopsIn(w.Task, w.Task.Threads); w.Kind == waits.JavaMonitor {
		in = l.like[stem(w.Thread.Name)]
	} else {
		in = l.in(w, at)
	}
	if len(in) > 0 && all[in[0]] {
		return true // with those that may lead beside it
	}
	count := map[waits.Kind]int{}
	for _, th := range in {
		count[g.nodes[g.at[th]].wait.Kind]++
	}
	for _, th := range in {
		if x := g.nodes[g.at[th]].wait; isAccept(x) || w.Kind == waits.RustLock || w.Kind == waits.ParkingLot || count[x.Kind] == 1 {
			all[th], held = true, true
		}
	}
	return held
}

// newsMayCome reports whether somebody is left who could give the leaders of a pool their news: those in line
// cannot. Where a process has both ends open, as those do that keep what they inherited, nothing
// tells who writes.
func (g *graph) newsMayCome(who []int32, leaders map[*kcdata.Thread]bool) bool {
	in, tasks, memory := map[*kcdata.Thread]bool{}, map[*kcdata.Task]bool{}, false
	for _, v := range who {
		w := g.nodes[v].wait
		in[w.Thread], tasks[w.Task] = true, true
	}
	for th := range leaders {
		w := g.nodes[g.at[th]].wait
		if !(w.File != nil && w.File.Own) && slices.ContainsFunc(w.Owners, func(o waits.Owner) bool { return tasks[o.Task] && o.Task != w.Task }) {
			return false
		}
		in[th] = true
		memory = memory || w.Kind == waits.UserCondvar || w.Kind == waits.UserSemaphore || w.Kind == waits.UserPark
	}
	if !memory {
		return true
	}
	for th := range leaders {
		tasks[g.nodes[g.at[th]].wait.Task] = true
	}
	if parent := g.parentOf(tasks); parent != nil {
		tasks[parent] = true
	}
	for task := range tasks {
		if slices.ContainsFunc(task.Threads, func(th *kcdata.Thread) bool { return !in[th] && g.mayWake(th) }) {
			return true
		}
	}
	return false
}

// parentOf is the parent of several processes; nil: they have several, init, or one that waits for nothing.
func (g *graph) parentOf(tasks map[*kcdata.Task]bool) *kcdata.Task {
	pid := uint32(0)
	for task := range tasks {
		if pid != 0 && pid != task.Linux.Ppid {
			return nil
		}
		pid = task.Linux.Ppid
	}
	if pid <= 1 || len(tasks) < 2 {
		return nil
	}
	v := sort.Search(int(g.waiting), func(v int) bool { return g.nodes[v].owner.Pid >= pid })
	if v == int(g.waiting) || g.nodes[v].owner.Pid != pid {
		return nil
	}
	return g.nodes[v].owner.Task
}

// mayWake reports whether a thread does more than wait for the end of a thread or a child.
func (g *graph) mayWake(th *kcdata.Thread) bool {
	v, there := g.at[th]
	if !there || v >= g.waiting {
		return model.StateOf(th).Class != model.Zombie
	}
	k := g.nodes[v].wait.Kind
	return k != waits.UserJoin && k != waits.ChildEnd
}

func isAccept(w *waits.Wait) bool {
	return atRest(w) && (fileOf(w).Op == kcdata.FileOpAccept ||
		slices.ContainsFunc(w.Thread.Sockets, func(s kcdata.LinuxSocket) bool { return s.Flags&kcdata.SocketListens != 0 }))
}

// sockStream is SOCK_STREAM.
const sockStream = 1

// isParent reports of an owner whether it is the parent of task.
func isParent(task *kcdata.Task) func(waits.Owner) bool {
	return func(o waits.Owner) bool { return o.Task != nil && o.Task.ID == uint64(task.Linux.Ppid) }
}

// forNews reports whether w is for something that nobody owes: the next request, job or event. Whoever
// waits for an answer or for room does not. Of a connection nothing tells whether an answer is due, unless the
// server says that it waits for a request; a parent sends jobs.
func forNews(w *waits.Wait) bool {
	f := fileOf(w)
	switch w.Kind {
	case waits.UserCondvar, waits.UserSemaphore, waits.UserPark, waits.IPC, waits.Descriptor:
	case waits.Pipe:
		if forRoom(w) || len(w.Owners) == 0 || w.File != nil && w.File.Says == waits.OwnEnd {
			return atRest(w)
		}
	case waits.Poll:
		if f.Kind == kcdata.FileSocket || f.Kind == 0 {
			return atRest(w)
		}
	case waits.Socket:
		if len(w.Owners) == 0 || forRoom(w) || w.File != nil && w.File.Socket != nil && w.File.Socket.Kind == sockStream && !slices.ContainsFunc(w.Owners, isParent(w.Task)) {
			return atRest(w)
		}
	default:
		return atRest(w)
	}
	return !slices.ContainsFunc(w.Owners, func(o waits.Owner) bool { return o.Owes })
}
