package waitgraph

import (
	"cmp"
	"slices"

	"stackshot/internal/waits"
)

// find returns the node of an owner of w.
func (g *graph) find(w *waits.Wait, o waits.Owner) int32 {
	switch {
	case isProcess(o):
		return g.processes[o.Task]
	case isAbsent(o):
		return g.absent[absenteeOf(w, o)]
	}
	return g.at[o.Thread]
}

// addEdges makes the edges of all waits. Several of one wait to one process become one: a
// process may have a hundred connections of one waiter.
func (g *graph) addEdges() {
	last := make([]int32, len(g.nodes)) // the latest edge to each node, + 1
	g.from = make([]int, 1, g.waiting+1)
	for v := range g.waiting {
		w, first, whole := g.nodes[v].wait, int32(len(g.edges)), false
		for i, o := range w.Owners {
			to := g.find(w, o)
			g.atFiles = g.atFiles || w.File != nil || isEnd(o.Relation) || g.isProcess(to)
			if at := last[to] - 1; at >= first && g.isProcess(to) && w.Owners[g.edges[at].via].Relation == o.Relation {
				if o.Owes && !w.Owners[g.edges[at].via].Owes {
					g.edges[at].via = int32(i)
				}
				continue
			}
			whole = whole || g.isProcess(to)
			g.edges = append(g.edges, edge{to, int32(i)})
			last[to] = int32(len(g.edges))
		}
		if whole {
			slices.SortFunc(g.edges[first:], func(a, b edge) int {
				return cmp.Or(cmp.Compare(a.node, b.node), cmp.Compare(w.Owners[a.via].Relation, w.Owners[b.via].Relation), cmp.Compare(a.via, b.via))
			})
		}
		g.from = append(g.from, len(g.edges))
	}
}

// edgesOf are the edges of v's wait. Their order does not depend on that of its owners.
func (g *graph) edgesOf(v int32) []edge { return g.edges[g.from[v]:g.from[v+1]] }

// owner is that to which the edge number e of v's wait leads.
func (g *graph) owner(v, e int32) waits.Owner {
	return g.nodes[v].wait.Owners[g.edges[g.from[v]+int(e)].via]
}
