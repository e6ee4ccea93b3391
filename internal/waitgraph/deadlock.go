package waitgraph

import (
	"cmp"
	"slices"

	"stackshot/internal/waits"
	"stackshot/kcdata"
)

// standstill is what deadlocks are made of.
type standstill struct {
	stuck  []bool   // of each thread that waits and each process: it can never go on by itself
	inner  *digraph // the waits between these
	part   []int32  // the strongly connected part of each
	cyclic []bool   // of each part: it has a cycle
}

// standstill finds the threads that wait and can never go on by themselves; with sure, by sure
// waits alone.
func (g *graph) standstill(sure bool) *standstill {
	d, need := g.blocking(sure)
	s := &standstill{stuck: stuck(d, d.reverse(), need)}
	s.inner = d.within(s.stuck)
	var count int
	s.part, count = parts(s.inner)
	s.cyclic = make([]bool, count)
	size := make([]int32, count)
	for v := range g.blockers {
		size[s.part[v]]++
		s.cyclic[s.part[v]] = size[s.part[v]] > 1 || slices.Contains(s.inner.out(v), v) || s.cyclic[s.part[v]]
	}
	return s
}

// onCycle reports whether v is in a part with a cycle.
func (s *standstill) onCycle(v int32) bool { return s.cyclic[s.part[v]] }

// blocking is the graph of who waits for whom. Its last vertex stands for all owners that can
// act. With sure, an edge that is not sure leads there, too.
func (g *graph) blocking(sure bool) (*digraph, []needs) {
	d, need := &digraph{off: []int{0}}, make([]needs, g.blockers+1)
	var row []uint64
	for v := range g.waiting {
		w := g.nodes[v].wait
		need[v] = everyone
		if w.AnyOwner {
			need[v] = someone
		}
		row = row[:0]
		for i, e := range g.edgesOf(v) {
			to, o := g.blockers, w.Owners[e.via]
			if e.node < g.blockers && g.mayBlock(w, e.node, o) && (!sure || isSure(w, o)) {
				to = e.node
			}
			row = append(row, uint64(to)<<32|uint64(i))
		}
		d.add(row)
	}
	for v := g.waiting; v < g.blockers; v++ {
		need[v] = someone
		row = row[:0]
		for _, u := range g.nodes[v].threads {
			row = append(row, uint64(min(u, g.blockers))<<32)
		}
		d.add(row)
	}
	d.add(nil)
	return d, need
}

// mayBlock reports whether o, an owner of w, which is u, can act only after its own wait, and w
// only after that. Who has a CPU runs. A tracer in wait4(2) waits for the next event of any
// tracee, which a signal from elsewhere may make: that a stopped tracee waits for it is no
// deadlock.
func (g *graph) mayBlock(w *waits.Wait, u int32, o waits.Owner) bool {
	switch {
	case isAbsent(o) || o.Relation == waits.Runs || goesOn(w) || hasOthers(w) || wakesItself(w, o):
		return false
	case g.isProcess(u):
		return true
	case o.Relation == waits.Tracer:
		return !slices.ContainsFunc(g.nodes[u].wait.Owners, func(o waits.Owner) bool { return o.Relation == waits.Child })
	}
	return true
}

func isSure(w *waits.Wait, o waits.Owner) bool {
	if w.Timed || fileOf(w).Flags&kcdata.FileCatches != 0 || isEnd(o.Relation) && !isSureEnd(w, o) {
		return false
	}
	return w.Confidence == waits.Sure && w.When == waits.Window && o.Relation != waits.Last
}

// deadlocks finds all deadlocks, and those behind them.
func (g *graph) deadlocks(oneInstant bool) (*standstill, []*Deadlock) {
	all := g.standstill(false)
	members := map[int32][]int32{} // by part
	whole := map[int32][]int32{}   // members with the processes
	var order []int32              // parts by their lowest thread
	for v := range g.blockers {
		if p := all.part[v]; all.stuck[v] && all.cyclic[p] {
			if members[p] == nil {
				order = append(order, p)
			}
			if whole[p] = append(whole[p], v); v < g.waiting {
				members[p] = append(members[p], v)
			}
		}
	}
	if len(order) == 0 {
		return all, nil
	}
	sure := &standstill{}
	if oneInstant {
		sure = g.standstill(true)
	}
	likelies := newFinder(all.inner, all.part)
	var sures *finder
	if oneInstant {
		sures = newFinder(sure.inner, sure.part)
	}
	out := make([]*Deadlock, len(order))
	behind := g.newWalk(all.inner.reverse(), all.stuck)
	for i, p := range order {
		d := &Deadlock{Confidence: waits.Likely, Part: g.waitsOf(members[p])}
		var certain []int32
		for _, v := range members[p] {
			if oneInstant && sure.onCycle(v) {
				certain = append(certain, v)
			}
		}
		if len(certain) > 0 {
			d.Confidence, d.Cycle = waits.Sure, g.waitsOf(sures.shortest(certain))
		} else {
			d.Cycle = g.waitsOf(likelies.shortest(members[p]))
		}
		behind.from(whole[p], func(v int32) bool { return !all.onCycle(v) })
		d.Tree, d.Behind = behind.result(func(int32) bool { return true })
		out[i] = d
	}
	slices.SortStableFunc(out, func(a, b *Deadlock) int {
		return cmp.Compare(len(b.Part)+len(b.Behind), len(a.Part)+len(a.Behind))
	})
	return all, out
}

// waitsOf are those of the threads among vertices.
func (g *graph) waitsOf(vertices []int32) []*waits.Wait {
	out := make([]*waits.Wait, 0, len(vertices))
	for _, v := range vertices {
		if v < g.waiting {
			out = append(out, g.nodes[v].wait)
		}
	}
	return out
}
