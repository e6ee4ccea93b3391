package waitgraph

import "stackshot/internal/model"

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

// telling is d with each stuck process leading only to the thread that says most of why it does not
// go on: one that is kept from running at all or in D, then one that waits for somebody, then
// the leader, then the lowest. One of a deadlock is told there.
func (b *blame) telling(d *digraph) *digraph {
	t := &digraph{off: []int{0}}
	var row []uint64
	for v := range int32(d.len()) {
		row = row[:0]
		for e := d.off[v]; e < d.off[v+1]; e++ {
			row = append(row, uint64(d.to[e])<<32|uint64(d.via[e]))
		}
		if b.g.isProcess(b.thread(v)) && b.stuck[v] && len(row) > 0 {
			best := d.out(v)[0]
			for _, u := range d.out(v) {
				if b.tells(d, v, u) < b.tells(d, v, best) {
					best = u
				}
			}
			row = append(row[:0], uint64(best)<<32)
		}
		t.add(row)
	}
	return t
}

// tells is the place of u among the threads of process v: the lowest tells most.
func (b *blame) tells(d *digraph, v, u int32) int {
	n := b.node(u)
	switch on := b.leadsOn(d, u); {
	case b.stand(u):
		return 4
	case n.held() != "" || !on && n.state.Class == model.Blocked:
		return 0
	case on:
		return 1
	case n.owner.Thread == b.node(v).owner.Thread:
		return 2
	}
	return 3
}
