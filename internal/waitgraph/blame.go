package waitgraph

import (
	"cmp"
	"slices"

	"stackshot/internal/model"
	"stackshot/internal/waits"
)

// blame is the graph in which culprits are found. Each thread is two vertices: v, reached
// through ordinary work alone, and len(nodes)+v (locked), reached through something it holds,
// where anything it does may be to blame (graph.blames).
//
// The culprits are where the set of those who cannot go on ends if nobody who may be to blame
// ever acts.
type blame struct {
	g       *graph
	d       *digraph
	rev     *digraph
	need    []needs
	stuck   []bool     // by the rule of stuck.go
	chains  []bool     // vertices whose chain goes on to somebody who may be to blame
	stands  []bool     // of each thread that waits: in a standstill; these have no edges here
	reached []bool     // vertices on a chain of a victim, culprits too
	end     []*Culprit // of each thread; nil: no culprit
	byLock  []bool     // of each culprit: it has more than a CPU that others want
}

func (g *graph) newBlame(stands []bool) *blame {
	b := &blame{g: g, d: &digraph{off: []int{0}}, need: make([]needs, 2*len(g.nodes)), stands: stands}
	var row []uint64
	for v := range int32(len(b.need)) {
		n, locked := b.node(v), b.locked(v)
		row = row[:0]
		if !b.stand(v) && n.held() == "" && !n.isSelf() && n.wait != nil {
			row = b.edges(row, b.thread(v), locked)
		}
		b.need[v] = b.needOf(n, v, len(row) > 0)
		b.d.add(row)
	}
	b.rev = b.d.reverse()
	b.stuck = stuck(b.d, b.rev, b.need)
	b.findChains()
	return b
}

func (b *blame) locked(v int32) bool  { return int(v) >= len(b.g.nodes) }
func (b *blame) thread(v int32) int32 { return v % int32(len(b.g.nodes)) }
func (b *blame) node(v int32) *node   { return &b.g.nodes[b.thread(v)] }
func (b *blame) stand(v int32) bool {
	t := b.thread(v)
	return t < b.g.waiting && b.stands[t]
}

// edges leads from t to its owners. A lock's holder is locked, if the lock has been waited for
// for long: a worker that waits for a lock for a moment does its work. Who waits for a child or
// a thread passes on how it was reached itself. A semaphore's last holder may hold nothing. A
// traced thread is an end itself.
func (b *blame) edges(row []uint64, t int32, locked bool) []uint64 {
	w, owners := b.g.nodes[t].wait, b.g.ownersOf(t)
	for i, o := range w.Owners {
		if o.Relation == waits.Tracer || o.Relation == waits.Runs && !b.g.keepsCPU(w, o, owners[i]) {
			if w.AnyOwner {
				return row[:0] // an alternative that nobody takes away
			}
			continue
		}
		to := owners[i]
		if b.locks(w, o.Relation, locked) {
			to += int32(len(b.g.nodes))
		}
		row = append(row, uint64(to)<<32|uint64(i))
	}
	return row
}

// locks reports whether an owner of w with this relation is locked, if w's thread is or is not.
func (b *blame) locks(w *waits.Wait, r waits.Relation, locked bool) bool {
	switch r {
	case waits.Runs:
		return true
	case waits.Holds:
		return b.g.old(w)
	case waits.Last:
		return false
	}
	return locked
}

// needOf is what vertex v needs. Who waits for a semaphore is to blame as if it had no known
// owner, if its last holder is not.
func (b *blame) needOf(n *node, v int32, waiting bool) needs {
	last := waiting && slices.ContainsFunc(n.wait.Owners, func(o waits.Owner) bool { return o.Relation == waits.Last })
	switch {
	case b.stand(v) || (!waiting || last) && b.g.blames(n, b.locked(v)):
		return never
	case !waiting:
		return nothing
	case n.wait.AnyOwner:
		return someone
	}
	return everyone
}

// findChains fills b.chains. A chain with alternatives goes on only if none of them is free.
func (b *blame) findChains() {
	b.chains = make([]bool, b.d.len())
	for v := range b.chains {
		out := b.d.out(int32(v))
		free := func(t int32) bool { return !b.stuck[t] }
		b.chains[v] = slices.ContainsFunc(out, func(t int32) bool { return b.stuck[t] && !b.stand(t) }) &&
			!(b.node(int32(v)).wait.AnyOwner && slices.ContainsFunc(out, free))
	}
}

// isVictim reports whether v is one whose chain counts.
func (b *blame) isVictim(v int32) bool {
	return v < b.g.waiting && b.stuck[v] && !b.stand(v) && b.g.old(b.g.nodes[v].wait) && b.chains[v]
}

// culprits finds them all, each with its victims. No thread in a standstill is among either.
func (b *blame) culprits(queues map[waits.Resource][]int32) []*Culprit {
	b.reach()
	b.alone(queues)
	var order []int32
	for t, c := range b.end {
		if c != nil {
			order = append(order, int32(t))
		}
	}
	slices.SortStableFunc(order, b.compare)
	b.listVictims(order)
	slices.SortStableFunc(order, func(x, y int32) int {
		cx, cy := b.end[x], b.end[y]
		if c := cmp.Compare(b.rank(x), b.rank(y)); c != 0 {
			return c
		}
		if cx.Reason == InD { // by age, but those nobody waits for behind the others
			return compareBool(len(cx.Victims) == 0, len(cy.Victims) == 0)
		}
		return cmp.Compare(len(cy.Victims), len(cx.Victims))
	})
	out := make([]*Culprit, len(order))
	for i, t := range order {
		out[i] = b.end[t]
	}
	return out
}

// reach follows every victim's chain to its culprits.
func (b *blame) reach() {
	n := len(b.g.nodes)
	b.reached, b.end, b.byLock = make([]bool, b.d.len()), make([]*Culprit, n), make([]bool, n)
	var queue []int32
	for v := range b.g.waiting {
		if b.isVictim(v) {
			b.reached[v] = true
			queue = append(queue, v)
		}
	}
	for i := 0; i < len(queue); i++ {
		v := queue[i]
		for e := b.d.off[v]; e < b.d.off[v+1]; e++ {
			t := b.d.to[e]
			if !b.chains[v] || !b.stuck[t] || b.stand(t) {
				continue
			}
			if !b.reached[t] {
				b.reached[t] = true
				queue = append(queue, t)
			}
			if !b.chains[t] {
				o := b.node(v).wait.Owners[b.d.via[e]]
				b.accuse(t, o.Relation)
				b.byLock[b.thread(t)] = b.byLock[b.thread(t)] || o.Relation != waits.Runs
			}
		}
	}
}

// accuse makes the thread of v a culprit.
func (b *blame) accuse(v int32, r waits.Relation) {
	t := b.thread(v)
	if b.end[t] == nil {
		n := b.node(v)
		c := &Culprit{Owner: n.owner, Wait: n.wait, Reason: b.g.reason(n)}
		c.Owner.Relation = r
		b.end[t] = c
	}
}

// alone makes culprits of the threads in D for which nobody waits. Who waits in a queue is
// told with its convoy.
func (b *blame) alone(queues map[waits.Resource][]int32) {
	for v := range b.g.waiting {
		n := &b.g.nodes[v]
		if _, queues := queues[n.wait.Resource]; queues && isLock(n.wait.Kind) {
			continue
		}
		if b.stuck[v] && !b.stand(v) && !b.chains[v] && n.state.Class == model.Blocked && b.g.reason(n) == InD && b.g.blames(n, false) {
			b.accuse(v, "")
			b.byLock[v] = true
		}
	}
}
