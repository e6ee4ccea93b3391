package waitgraph

import (
	"cmp"
	"maps"
	"slices"

	"stackshot/internal/waits"
)

// convoyFrom is how many must wait for a lock to make a convoy.
const convoyFrom = 4

// isLock reports whether threads hold what k waits for, and one after the other gets it.
func isLock(k waits.Kind) bool {
	return k.IsLock() && k != waits.PercpuSem
}

// queues gives the locks for which many have waited for long, with their waiters. Who stands
// is shown with a deadlock, and waits in none; nor does who waits for its turn in a pool.
func (g *graph) queues(stands []bool) map[waits.Resource][]int32 {
	waiters := map[waits.Resource][]int32{}
	for v := range g.waiting {
		w := g.nodes[v].wait
		if isLock(w.Kind) && w.Resource.ID != 0 && g.old(w) && !stands[v] && !g.inTurn(v) {
			waiters[w.Resource] = append(waiters[w.Resource], v)
		}
	}
	maps.DeleteFunc(waiters, func(_ waits.Resource, who []int32) bool { return len(who) < convoyFrom })
	return waiters
}

// convoys makes a convoy of each queue.
func (g *graph) convoys(queues map[waits.Resource][]int32) (out []*Convoy) {
	for r, who := range queues {
		slices.SortFunc(who, g.longestFirst)
		out = append(out, &Convoy{Resource: r, Waiters: g.waitsOf(who), Owners: g.holders(who)})
	}
	slices.SortFunc(out, func(a, b *Convoy) int {
		return cmp.Or(cmp.Compare(len(b.Waiters), len(a.Waiters)), compareResources(a.Resource, b.Resource))
	})
	return out
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
