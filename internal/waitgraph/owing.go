package waitgraph

import (
	"slices"

	"stackshot/internal/model"
	"stackshot/internal/waits"
	"stackshot/kcdata"
)

// isOwed reports whether o, which is process p and owes w something, has owed it for MinWait, if
// w has waited for so long. A connection has lain there all the while. Bytes have if nobody of
// w's process could send them since. Who made the connection and reads may have asked for
// nothing: it may wait for news, as subscribers do. Then it is owed if the process does not move;
// one that sleeps for a time does, since it sends its news at intervals.
func (g *graph) isOwed(w *waits.Wait, o waits.Owner, p int32) bool {
	return o.Relation == waits.Listener || w.File != nil && w.File.Unread > 0 && g.quiet(w.Task) || !g.moves(p)
}

// quiet reports whether all threads of task have waited for MinWait. It is found out once.
func (g *graph) quiet(task *kcdata.Task) bool {
	q, ok := g.quiets[task]
	if !ok {
		q = !slices.ContainsFunc(task.Threads, func(th *kcdata.Thread) bool {
			v, there := g.at[th]
			return model.StateOf(th).Class != model.Zombie && !(there && v < g.waiting && g.old(g.nodes[v].wait))
		})
		g.quiets[task] = q
	}
	return q
}

// moves reports whether a thread of process p runs, waits for a CPU, or sleeps until a timeout
// wakes it. It is found out once.
func (g *graph) moves(p int32) bool {
	m, ok := g.moving[p]
	if !ok {
		m = slices.ContainsFunc(g.nodes[p].threads, func(v int32) bool {
			n := &g.nodes[v]
			r := g.reason(n)
			return r.wantsCPU() || r == Asleep && n.wait != nil && endsByTime(n.wait)
		})
		g.moving[p] = m
	}
	return m
}

// isTracee reports whether o, a child for which w waits, is stopped by w's own process, which traces
// it: so a debugger rests.
func (g *graph) isTracee(w *waits.Wait, o waits.Owner) bool {
	v, there := g.at[o.Thread]
	if o.Relation != waits.Child || isAbsent(o) || !there {
		return false
	}
	t := g.nodes[v].wait
	return t != nil && t.Kind == waits.Traced && slices.ContainsFunc(t.Owners, func(by waits.Owner) bool { return by.Relation == waits.Tracer && by.Task == w.Task })
}

// works reports whether a thread or process does something (acts), or waits for somebody who does,
// however many steps away.
func (g *graph) works(v int32) bool {
	if g.work == nil {
		g.work = g.working()
	}
	return g.work[v]
}

func (g *graph) working() []bool {
	d, need := &digraph{off: []int{0}}, make([]needs, len(g.nodes))
	var row []uint64
	for v := range int32(len(g.nodes)) {
		row, need[v] = row[:0], never
		n := &g.nodes[v]
		switch {
		case g.isProcess(v):
			for _, u := range n.threads {
				row = append(row, uint64(u)<<32)
			}
		case n.wait != nil && n.held() == "":
			for i, e := range g.edgesOf(v) {
				row = append(row, uint64(e.node)<<32|uint64(i))
			}
		}
		if len(row) > 0 {
			need[v] = someone
		}
		if !g.isProcess(v) && g.acts(n) {
			need[v] = nothing
		}
		d.add(row)
	}
	rests := stuck(d, d.reverse(), need)
	for v := range rests {
		rests[v] = !rests[v]
	}
	return rests
}

// acts reports whether a thread does something, or may be about to: it runs, waits for a CPU, sleeps for a
// time, has waited for less than MinWait, or waits for a person.
func (g *graph) acts(n *node) bool {
	r := g.reason(n)
	return r.wantsCPU() || (r == Asleep || r == InD) && (n.wait == nil || endsByTime(n.wait) || !g.old(n.wait) || forPerson(n.wait))
}

// endsByTime reports whether w is for a time, or ends at a timeout.
func endsByTime(w *waits.Wait) bool { return w.Timed || w.Kind == waits.Timer }

// makesRoom reports whether v waits for room to write, and another process that reads runs or waits for a
// person. One that sleeps for a time has not read for as long as v has waited.
func (g *graph) makesRoom(v int32) bool {
	w := g.nodes[v].wait
	return forRoom(w) && slices.ContainsFunc(g.edgesOf(v), func(e edge) bool {
		return g.isProcess(e.node) && g.nodes[e.node].owner.Task != w.Task && slices.ContainsFunc(g.nodes[e.node].threads, g.reads)
	})
}

// reads reports whether a thread may be about to read: it runs, or waits for a person.
func (g *graph) reads(v int32) bool {
	n := &g.nodes[v]
	r := g.reason(n)
	return r.wantsCPU() || r == Asleep && n.wait != nil && forPerson(n.wait)
}

// related reports whether a and b are one process, one the other's parent, or children of one
// parent that is not init.
func related(a, b *kcdata.Task) bool {
	p, q := uint64(a.Linux.Ppid), uint64(b.Linux.Ppid)
	return a == b || p == b.ID || q == a.ID || p == q && p > 1
}
