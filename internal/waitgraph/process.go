package waitgraph

import (
	"slices"

	"stackshot/internal/model"
	"stackshot/internal/waits"
	"stackshot/kcdata"
)

// isProcess reports whether o is a process as a whole, which goes on as long as one of its
// threads does (I10).
func isProcess(o waits.Owner) bool {
	return o.Whole && !o.Dead && o.Task != nil && len(o.Task.Threads) > 0
}

// processOf names a process. Its thread, for its name, is the leader.
func processOf(t *kcdata.Task) waits.Owner {
	o := waits.Owner{Task: t, Thread: t.Threads[0], Tid: uint32(t.ID), Pid: uint32(t.ID), Whole: true}
	for _, th := range t.Threads {
		if th.ID == t.ID {
			o.Thread = th
		}
	}
	return o
}

// addThreads adds the threads of all processes that are not there yet.
func (g *graph) addThreads() {
	for t := range g.processes {
		for _, th := range t.Threads {
			if _, there := g.at[th]; !there {
				g.at[th] = 0
				g.nodes = append(g.nodes, node{owner: ownerOf(t, th), state: model.StateOf(th)})
			}
		}
	}
}

// findThreads fills node.threads. A thread that has ended does nothing any more.
func (g *graph) findThreads() {
	for v := g.waiting; v < g.blockers; v++ {
		n := &g.nodes[v]
		for _, th := range n.owner.Task.Threads {
			if u := g.at[th]; g.nodes[u].state.Class != model.Zombie {
				n.threads = append(n.threads, u)
			}
		}
		slices.Sort(n.threads)
		n.threads = slices.Compact(n.threads)
	}
}

func (g *graph) isProcess(v int32) bool { return v >= g.waiting && v < g.blockers }
