package waitgraph

import (
	"cmp"
	"slices"

	"stackshot/internal/model"
	"stackshot/internal/waits"
)

// blame is the graph in which culprits are found. Each thread and process is three vertices: v,
// reached through ordinary work alone, len(nodes)+v (locked), reached through something it holds,
// where anything it does may be to blame, and 2*len(nodes)+v (owed), reached by somebody to whom
// it owes an answer (graph.blames).
//
// The culprits are where the set of those who cannot go on ends if nobody who may be to blame
// ever acts.
type blame struct {
	g       *graph
	ways    way      // those that there are
	d       *digraph // a process leads to its telling thread alone
	rev     *digraph
	need    []needs
	stuck   []bool           // by the rule of stuck.go
	chains  []bool           // vertices whose chain goes on to somebody who may be to blame
	stands  []bool           // of each thread that waits and each process: in a standstill; these have no edges here
	reached []bool           // vertices on a chain of a victim, culprits too
	via     []waits.Relation // of each process that was reached: by what
	end     []*Culprit       // of each thread; nil: no culprit
	byLock  []bool           // of each culprit: it has more than a CPU that others want
}

// way says how a vertex of blame is reached.
type way int32

const (
	ordinary way = iota
	locked
	owed // only processes can be
	everyWay
)

func (g *graph) newBlame(stands []bool) *blame {
	b := &blame{g: g, ways: owed, stands: stands}
	if len(g.processes) > 0 {
		b.ways = everyWay
	}
	b.need = make([]needs, int(b.ways)*len(g.nodes))
	d := &digraph{off: []int{0}}
	var row []uint64
	for v := range int32(len(b.need)) {
		n, t := b.node(v), b.thread(v)
		row = row[:0]
		switch {
		case b.stand(v) || n.held() != "" || n.isSelf():
		case g.isProcess(t):
			row = b.members(row, v)
		case n.wait != nil && !goesOn(n.wait):
			row = b.edges(row, t, b.way(v))
		}
		b.need[v] = b.needOf(n, v, len(row) > 0)
		d.add(row)
	}
	b.rev = d.reverse()
	b.stuck = stuck(d, b.rev, b.need)
	b.findChains(d)
	return b
}

func (b *blame) way(v int32) way      { return way(int(v) / len(b.g.nodes)) }
func (b *blame) thread(v int32) int32 { return v % int32(len(b.g.nodes)) }
func (b *blame) node(v int32) *node   { return &b.g.nodes[b.thread(v)] }

// at is the vertex of t that is reached in that way.
func (b *blame) at(t int32, by way) int32 { return t + int32(by)*int32(len(b.g.nodes)) }

func (b *blame) stand(v int32) bool {
	t := b.thread(v)
	return t < b.g.blockers && b.stands[t]
}

// leadsOn reports whether v waits for somebody who cannot go on either. A chain with alternatives
// goes on only if none of them is free.
func (b *blame) leadsOn(d *digraph, v int32) bool {
	out, n := d.out(v), b.node(v)
	free := func(t int32) bool { return !b.stuck[t] }
	return slices.ContainsFunc(out, func(t int32) bool { return b.stuck[t] && !b.stand(t) }) &&
		!((n.wait == nil || n.wait.AnyOwner) && slices.ContainsFunc(out, free))
}

// isVictim reports whether v is one whose chain counts.
func (b *blame) isVictim(v int32) bool {
	return v < b.g.waiting && b.stuck[v] && !b.stand(v) && b.g.old(b.g.nodes[v].wait) && b.chains[v]
}

// culprits finds them all, each with its victims. No thread in a standstill is among either.
func (b *blame) culprits() []*Culprit {
	b.reach()
	b.alone()
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
	b.via = make([]waits.Relation, b.d.len())
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
			r := b.via[v]
			if !b.isProcess(v) {
				r = b.g.owner(b.thread(v), b.d.via[e]).Relation
			}
			if !b.reached[t] {
				b.reached[t], b.via[t] = true, r
				queue = append(queue, t)
			}
			if !b.chains[t] && b.isEnd(t) {
				b.accuse(t, r, b.g.isProcess(b.thread(v)))
				b.byLock[b.thread(t)] = b.byLock[b.thread(t)] || r != waits.Runs
			}
		}
	}
}

// accuse makes the thread of v a culprit; whole: for its process.
func (b *blame) accuse(v int32, r waits.Relation, whole bool) {
	t := b.thread(v)
	if b.end[t] == nil {
		n := b.node(v)
		c := &Culprit{Owner: n.owner, Wait: n.wait, Reason: b.g.reason(n)}
		c.Owner.Relation, c.Owner.Whole = r, whole
		b.end[t] = c
	}
}

// alone makes culprits of the threads in D for which nobody waits. Who waits in a queue is
// told with its convoy.
func (b *blame) alone() {
	for v := range b.g.waiting {
		n := &b.g.nodes[v]
		if !b.g.queued[v] && b.stuck[v] && !b.stand(v) && !b.chains[v] && n.state.Class == model.Blocked && b.g.reason(n) == InD && b.g.blames(v, ordinary) {
			b.accuse(v, "", false)
			b.byLock[v] = true
		}
	}
}
