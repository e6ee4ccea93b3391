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
			switch g.reason(n) {
			case Running, Runnable, MissedCPU:
				return true
			case Asleep:
				return n.wait != nil && (n.wait.Timed || n.wait.Kind == waits.Timer)
			}
			return false
		})
		g.moving[p] = m
	}
	return m
}

// takesTurns reports whether o, which is node, has w's lock only to wait for the next
// connection, in the same pool as w's thread: one thread or process of the pool does, and the
// others stand in line for it.
func (g *graph) takesTurns(w *waits.Wait, o waits.Owner, node int32) bool {
	return o.Relation == waits.Holds && !isAbsent(o) && isLock(w.Kind) && related(w.Task, o.Task) && g.accepts(node)
}

// inTurn reports whether v waits for its turn in a pool.
func (g *graph) inTurn(v int32) bool {
	w := g.nodes[v].wait
	return slices.ContainsFunc(g.edgesOf(v), func(e edge) bool { return g.takesTurns(w, w.Owners[e.via], e.node) })
}

// accepts reports whether a node waits for the next connection; of a process, one of its
// threads. It is found out once.
func (g *graph) accepts(v int32) bool {
	if !g.isProcess(v) {
		return isAccept(g.nodes[v].wait)
	}
	a, ok := g.accepting[v]
	if !ok {
		a = slices.ContainsFunc(g.nodes[v].threads, func(u int32) bool { return isAccept(g.nodes[u].wait) })
		g.accepting[v] = a
	}
	return a
}

func isAccept(w *waits.Wait) bool {
	return w != nil && atRest(w) && (fileOf(w).Op == kcdata.FileOpAccept ||
		slices.ContainsFunc(w.Thread.Sockets, func(s kcdata.LinuxSocket) bool { return s.Flags&kcdata.SocketListens != 0 }))
}

// related reports whether a and b are one process, one the other's parent, or children of one
// parent that is not init.
func related(a, b *kcdata.Task) bool {
	p, q := uint64(a.Linux.Ppid), uint64(b.Linux.Ppid)
	return a == b || p == b.ID || q == a.ID || p == q && p > 1
}
