package waitgraph

import (
	"slices"

	"stackshot/internal/model"
)

// members leads from a process to its threads. Of one that serves a file system those that wait
// for the next request do not count, since the one that is waited for lies with the others.
func (b *blame) members(row []uint64, v int32) []uint64 {
	busy := false
	threads := b.node(v).threads
	for _, u := range threads {
		busy = busy || !b.rests(u)
	}
	for _, u := range threads {
		if b.way(v) != locked || !busy || !b.rests(u) {
			row = append(row, uint64(b.at(u, b.way(v)))<<32)
		}
	}
	return row
}

func (b *blame) rests(u int32) bool {
	w := b.g.nodes[u].wait
	return w != nil && atRest(w)
}

// findChains fills b.chains, and b.d with d in which a process leads only to the thread that
// tells most of why it does not go on: one that is kept from running at all or in D, then one
// whose chain goes on, then the leader, then the lowest. A chain goes on only if it comes to an
// end: threads may wait in a circle that is no deadlock, for a server that has another thread.
func (b *blame) findChains(d *digraph) {
	on := make([]bool, d.len())
	for v := range int32(d.len()) {
		on[v] = b.leadsOn(d, v)
	}
	if b.chains, b.d = on, d; !b.g.atFiles {
		return
	}
	nearest := func(follow func(from, to int32) bool) []int32 { return distances(b.rev, on, b.ends(on), follow) }
	every := func(from, to int32) bool { return true }
	for v, far := range nearest(every) {
		on[v] = on[v] && (far >= 0 || b.need[v] != never)
	}
	far := nearest(every)
	strong := nearest(func(from, to int32) bool { return !b.isProcess(from) || on[to] || b.isKept(to) })
	for v := range on {
		on[v] = on[v] && far[v] >= 0
	}
	b.d = b.telling(d, strong, far)
	b.rev = b.d.reverse()
}

// ends are the vertices that may be to blame and do not lead on.
func (b *blame) ends(on []bool) (ends []int32) {
	for v := range on {
		if !on[v] && b.isEnd(int32(v)) {
			ends = append(ends, int32(v))
		}
	}
	return ends
}

// isEnd reports whether v may be to blame if its chain does not go on.
func (b *blame) isEnd(v int32) bool { return b.stuck[v] && b.need[v] == never && !b.stand(v) }

// distances are the steps from each vertex that leads on to the nearest of ends by edges that
// follow lets pass; -1 if there is no way.
func distances(rev *digraph, on []bool, ends []int32, follow func(from, to int32) bool) []int32 {
	far := make([]int32, len(on))
	for v := range far {
		far[v] = -1
	}
	for _, v := range ends {
		far[v] = 0
	}
	queue := slices.Clone(ends)
	for i := 0; i < len(queue); i++ {
		v := queue[i]
		for _, u := range rev.out(v) {
			if on[u] && far[u] < 0 && follow(u, v) {
				far[u] = far[v] + 1
				queue = append(queue, u)
			}
		}
	}
	return far
}

func (b *blame) isProcess(v int32) bool { return b.g.isProcess(b.thread(v)) }

// isKept reports whether v's thread is kept from running at all, or in D.
func (b *blame) isKept(v int32) bool {
	n := b.node(v)
	return n.held() != "" || n.state.Class == model.Blocked
}

// telling is d with each process that leads on leading only to its telling thread: that through
// which an end is nearest, so that no chain runs in a circle.
func (b *blame) telling(d *digraph, strong, far []int32) *digraph {
	t := &digraph{off: []int{0}}
	var row []uint64
	for v := range int32(d.len()) {
		row = row[:0]
		if !b.isProcess(v) || !b.chains[v] {
			for e := d.off[v]; e < d.off[v+1]; e++ {
				row = append(row, uint64(d.to[e])<<32|uint64(d.via[e]))
			}
		} else {
			by := far
			if strong[v] >= 0 {
				by = strong
			}
			best := int32(-1)
			for _, u := range d.out(v) {
				weak := strong[v] >= 0 && by[u] == 0 && !b.isKept(u)
				if by[u] >= 0 && !weak && (best < 0 || by[u] < by[best] || by[u] == by[best] && b.node(u).owner.Thread == b.node(v).owner.Thread) {
					best = u
				}
			}
			row = append(row, uint64(best)<<32)
		}
		t.add(row)
	}
	return t
}
