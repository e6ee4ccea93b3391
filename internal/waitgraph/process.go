package waitgraph

import (
	"cmp"
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

// merge leaves of several edges with one target the one that says most: a process may have a
// hundred connections of one waiter. row is of target<<32 | via, via an index of w.Owners.
func merge(w *waits.Wait, row []uint64) []uint64 {
	if len(row) < 2 || !slices.ContainsFunc(w.Owners, func(o waits.Owner) bool { return o.Whole }) {
		return row
	}
	slices.SortFunc(row, func(a, b uint64) int {
		x, y := &w.Owners[uint32(a)], &w.Owners[uint32(b)]
		return cmp.Or(cmp.Compare(a>>32, b>>32), compareBool(!x.Whole, !y.Whole), compareBool(!x.Owes, !y.Owes),
			cmp.Compare(x.Relation, y.Relation), cmp.Compare(a, b))
	})
	return slices.CompactFunc(row, func(a, b uint64) bool {
		return a>>32 == b>>32 && w.Owners[uint32(a)].Whole && w.Owners[uint32(b)].Whole
	})
}
