package waitgraph

import (
	"cmp"
	"slices"

	"stackshot/internal/model"
)

// rank is the place of a culprit's kind among the others.
func (b *blame) rank(t int32) int {
	switch c := b.end[t]; {
	case !b.byLock[t]:
		return 3 // has a CPU that others want
	case c.Reason == InD:
		return 0
	case c.Reason == Stopped || c.Reason == Traced || c.Reason == Frozen:
		return 1
	}
	return 2
}

// compare is the order in which culprits get their victims: by rank, then the older one.
func (b *blame) compare(x, y int32) int {
	if c := cmp.Compare(b.rank(x), b.rank(y)); c != 0 {
		return c
	}
	age := func(t int32) (a model.Age) {
		if w := b.end[t].Wait; w != nil {
			a = w.Age
		}
		return a
	}
	return model.LongestFirst(age(x), age(y))
}

// listVictims gives each culprit its victims, and the culprits of order go first.
func (b *blame) listVictims(order []int32) {
	k := b.g.newWalk(b.rev, b.reached)
	k.layer = int32(len(b.g.nodes))
	for _, t := range order {
		var sources, shared []int32
		for by := range b.ways {
			v := b.at(t, by)
			if !b.reached[v] || b.chains[v] {
				continue
			}
			sources = append(sources, v)
			b.direct(v, func(u int32) {
				if k.met[u] && b.chains[u] {
					shared = append(shared, b.thread(u))
				}
			})
		}
		k.from(sources, func(u int32) bool { return b.chains[u] })
		shared = slices.DeleteFunc(shared, func(u int32) bool { return k.mine[u] == k.walks })
		slices.Sort(shared)
		shared = slices.Compact(shared)
		slices.SortFunc(shared, b.g.longestFirst)
		c := b.end[t]
		c.Shared = b.g.waitsOf(shared)
		c.Tree, c.Victims = k.result(b.isVictim)
	}
}

// direct calls visit for those who wait for v's thread, or for its process if v speaks for it.
func (b *blame) direct(v int32, visit func(u int32)) {
	for _, u := range b.rev.out(v) {
		if !b.g.isProcess(b.thread(u)) {
			visit(u)
			continue
		}
		for _, w := range b.rev.out(u) {
			visit(w)
		}
	}
}
