package waitgraph

import (
	"cmp"
	"slices"

	"stackshot/internal/model"
	"stackshot/internal/waits"
	"stackshot/kcdata"
)

// convoyFrom is how many must wait for a lock to make a convoy, if anybody is known to have it.
const convoyFrom = 4

// isLock reports whether threads hold what k waits for, and one after the other gets it.
func isLock(k waits.Kind) bool {
	return k.IsLock() && k != waits.PercpuSem
}

// findQueues fills g.queues and g.queued with those who have waited for long for a lock that many want. Who stands
// is shown with a deadlock, and waits in none; nor does who waits for its turn in a pool. Where whoever
// has the lock goes on, for all that is known, there is no queue.
func (g *graph) findQueues(stands []bool) {
	g.queued = make([]bool, g.waiting)
	for _, line := range g.lines {
		who := slices.DeleteFunc(slices.Clone(line), func(v int32) bool {
			w := g.nodes[v].wait
			return !g.old(w) && !w.Again || stands[v] || g.turn[v]
		})
		if !slices.ContainsFunc(who, func(v int32) bool { return g.old(g.nodes[v].wait) }) || g.nodes[who[0]].wait.Resource == (waits.Resource{}) {
			continue
		}
		unowned := !slices.ContainsFunc(who, func(v int32) bool { return len(g.edgesOf(v)) > 0 })
		if few := len(who) < convoyFrom; few && unowned {
			who = slices.DeleteFunc(who, func(v int32) bool { return !g.countsAlone(v) })
		} else if few {
			continue
		}
		if len(who) > 0 && !(unowned && g.mayBeHeld(who)) && !slices.ContainsFunc(who, g.holderGoesOn) {
			g.queues = append(g.queues, who)
			for _, v := range who {
				g.queued[v] = true
			}
		}
	}
}

// countsAlone reports whether v is stuck though few wait for its lock, of which nobody is known to have it. One in
// D is told of anyway; a lock of a file is had for as long as a job takes, and may be had by one that was not seen.
func (g *graph) countsAlone(v int32) bool {
	n := &g.nodes[v]
	return n.state.Class != model.Blocked && !n.wait.Timed && n.wait.Kind != waits.FileLock
}

// holderGoesOn reports whether who have the lock for which v waits go on, or one of them where one is enough. A
// lock of a file is had for as long as a job takes, and an initialization is a job: so whoever has it does if it works.
func (g *graph) holderGoesOn(v int32) bool {
	w, edges := g.nodes[v].wait, g.edgesOf(v)
	stays := func(e edge) bool {
		return !g.goesOnSoon(e.node) && !(w.Kind == waits.FileLock && g.works(e.node)) && !(w.Kind.IsOnce() && g.initializes(e.node))
	}
	if !w.AnyOwner {
		return len(edges) > 0 && !slices.ContainsFunc(edges, stays)
	}
	return slices.ContainsFunc(edges, func(e edge) bool { return !stays(e) })
}

// initializes reports whether u, which runs an initialization, works; or polls, for which nobody may be known; or waits in
// memory, where a thread of its process that works may wake it.
func (g *graph) initializes(u int32) bool {
	w := g.nodes[u].wait
	switch {
	case g.works(u):
		return true
	case w == nil:
		return false
	}
	switch w.Kind {
	case waits.UserCondvar, waits.UserSemaphore, waits.UserPark, waits.UserBarrier, waits.Futex:
		return slices.ContainsFunc(w.Task.Threads, func(th *kcdata.Thread) bool {
			v, there := g.at[th]
			return there && g.works(v) || !there && model.StateOf(th).Class.WantsCPU()
		})
	}
	return isPolled(w)
}

// goesOnSoon reports whether u waits for a person, or for room at a reader that runs or does so.
func (g *graph) goesOnSoon(u int32) bool {
	return u < g.waiting && (forPerson(g.nodes[u].wait) || g.makesRoom(u))
}

// mayBeHeld reports whether a thread of the processes of who, that wait for a lock of which nobody is known
// to have it, may have it and goes on soon; or acts or waits for a child that works, if who are few; or works, if it is an
// initialization.
func (g *graph) mayBeHeld(who []int32) bool {
	seen := map[*kcdata.Task]bool{}
	kind := g.nodes[who[0]].wait.Kind
	few := len(who) < convoyFrom
	for _, v := range who {
		task := g.nodes[v].wait.Task
		if seen[task] {
			continue
		}
		seen[task] = true
		if slices.ContainsFunc(task.Threads, func(th *kcdata.Thread) bool {
			u, there := g.at[th]
			if kind == waits.JavaMonitor && g.isJavasOwn(task, th) {
				return false
			}
			if !there || u >= g.waiting {
				return (few || kind.IsOnce()) && model.StateOf(th).Class.WantsCPU()
			}
			if g.nodes[u].wait.Resource == g.nodes[v].wait.Resource {
				return false // waits for it, too
			}
			job := kind.IsOnce() || few && g.nodes[u].wait.Kind == waits.ChildEnd
			return g.goesOnSoon(u) || few && g.acts(&g.nodes[u]) || job && g.works(u)
		}) {
			return true
		}
	}
	return false
}

// isJavasOwn reports whether a thread is one of the virtual machine, which enters no monitor for long, or the one that
// cleans up behind objects.
func (g *graph) isJavasOwn(task *kcdata.Task, th *kcdata.Thread) bool {
	return th.Name == "Common-Cleaner" || slices.ContainsFunc(functionsOf(task, th), func(f function) bool { return g.named(f.name).javasOwn })
}

// convoys makes a convoy of each queue.
func (g *graph) convoys() (out []*Convoy) {
	for _, who := range g.queues {
		out = append(out, g.convoyOf(who))
	}
	sortConvoys(out)
	return out
}

// convoyOf is the lock for which who wait, whom it sorts.
func (g *graph) convoyOf(who []int32) *Convoy {
	slices.SortFunc(who, g.longestFirst)
	return &Convoy{Resource: g.nodes[who[0]].wait.Resource, Waiters: g.waitsOf(who), Owners: g.holders(who)}
}

// sortConvoys puts the longest first.
func sortConvoys(list []*Convoy) {
	slices.SortStableFunc(list, func(a, b *Convoy) int {
		return cmp.Or(cmp.Compare(len(b.Waiters), len(a.Waiters)), compareResources(a.Resource, b.Resource))
	})
}

// holders are the owners that the waits of who name, each once, in the order of threads.
func (g *graph) holders(who []int32) (out []waits.Owner) {
	first := map[int32]waits.Owner{}
	var order []int32
	for _, v := range who {
		for _, e := range g.edgesOf(v) {
			if _, there := first[e.node]; !there {
				first[e.node] = g.nodes[v].wait.Owners[e.via]
				order = append(order, e.node)
			}
		}
	}
	slices.Sort(order)
	for _, n := range order {
		out = append(out, first[n])
	}
	return out
}
