package waitgraph

import (
	"slices"

	"stackshot/internal/waits"
)

// walk goes from what threads wait for to those who wait, several times; who was met once is
// not met again, so that each thread is listed once, and all walks together are linear.
// A thread may be several vertices (blame.go), v, v+layer and so on; in one walk it is one
// step. A process is none: who waits for it stands below that thread of it by which it was met.
type walk struct {
	g     *graph
	rev   *digraph
	set   []bool // vertices that may be met
	met   []bool
	layer int32   // 0: a thread is one vertex
	mine  []int32 // of each thread: the number of the last walk that met it
	place []int   // its step in that walk
	walks int32
	steps []step
	queue []hop
}

// hop is a vertex that was met, with its step; -1: whom the walk began at.
type hop struct {
	vertex int32
	step   int
}

func (g *graph) newWalk(rev *digraph, set []bool) *walk {
	return &walk{
		g: g, rev: rev, set: set, met: make([]bool, rev.len()),
		mine: make([]int32, len(g.nodes)+1), place: make([]int, len(g.nodes)+1),
	}
}

// nodeOf is the thread of a vertex.
func (k *walk) nodeOf(v int32) int32 {
	if k.layer > 0 {
		return v % k.layer
	}
	return v
}

// from walks from sources, nearest first, to all who wait for them and whom enter lets in.
func (k *walk) from(sources []int32, enter func(v int32) bool) {
	k.steps, k.queue = k.steps[:0], k.queue[:0]
	k.walks++
	for _, v := range sources {
		k.met[v] = true
		k.queue = append(k.queue, hop{v, -1})
	}
	for i := 0; i < len(k.queue); i++ {
		h := k.queue[i]
		for e := k.rev.off[h.vertex]; e < k.rev.off[h.vertex+1]; e++ {
			u := k.rev.to[e]
			if k.met[u] || !k.set[u] || !enter(u) {
				continue
			}
			k.met[u] = true
			at := h.step
			if !k.g.isProcess(k.nodeOf(u)) {
				at = k.step(u, h.step, k.rev.via[e])
			}
			k.queue = append(k.queue, hop{u, at})
		}
	}
}

// step is the step of u's thread, a new one unless this walk has one.
func (k *walk) step(u int32, up int, via int32) int {
	n := k.nodeOf(u)
	if k.mine[n] != k.walks {
		k.mine[n], k.place[n] = k.walks, len(k.steps)
		k.steps = append(k.steps, step{node: n, up: up, via: via})
	}
	return k.place[n]
}

// result is the tree of the last walk, and those in it that are victims, longest first.
func (k *walk) result(victim func(v int32) bool) (tree []Branch, victims []*waits.Wait) {
	for _, h := range k.queue {
		if h.step >= 0 && !k.g.isProcess(k.nodeOf(h.vertex)) && victim(h.vertex) {
			k.steps[h.step].victim = true
		}
	}
	var nodes []int32
	for _, s := range k.steps {
		if s.victim {
			nodes = append(nodes, s.node)
		}
	}
	slices.SortFunc(nodes, k.g.longestFirst)
	return k.g.branches(k.steps), k.g.waitsOf(nodes)
}
