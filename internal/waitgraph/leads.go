package waitgraph

import (
	"slices"

	"stackshot/internal/waits"
)

// edges leads from t to its owners. A lock's holder is locked, if the lock has been waited for
// for long: a worker that waits for a lock for a moment does its work. Who waits for a child or
// a thread passes on how it was reached itself. A semaphore's last holder may hold nothing. A
// traced thread is an end itself.
func (b *blame) edges(row []uint64, t int32, by way) []uint64 {
	w := b.g.nodes[t].wait
	for i, e := range b.g.edgesOf(t) {
		o := w.Owners[e.via]
		free := o.Relation == waits.Tracer || wakesItself(w, o) || by == ordinary && b.g.isTracee(w, o)
		if free || o.Relation == waits.Runs && !b.g.keepsCPU(w, o, e.node) {
			if w.AnyOwner {
				return row[:0] // an alternative that nobody takes away
			}
			continue
		}
		row = append(row, uint64(b.at(e.node, b.leads(t, o, e.node, by)))<<32|uint64(i))
	}
	return row
}

// leads says how o, an owner of t's wait, which is node, is reached, if t is reached by by. Who
// serves a file system or memory has to, who has the other end of a file only if it owes
// something, and nobody has to make room soon. A lock of a file is had for as long as a job takes, an initialization for as
// long as it goes on.
func (b *blame) leads(t int32, o waits.Owner, node int32, by way) way {
	w := b.g.nodes[t].wait
	long := b.g.old(w)
	switch o.Relation {
	case waits.Runs:
		return locked
	case waits.Last:
		return ordinary
	case waits.Holds, waits.Server, waits.Pager, waits.Reaps:
		if long && !(o.Relation == waits.Holds && (b.g.turn[t] || w.Kind == waits.FileLock || w.Kind.IsOnce() && b.g.initializes(node))) {
			return locked
		}
		return ordinary
	case waits.OtherEnd, waits.Listener:
		if long && o.Owes && isProcess(o) && !forRoom(w) && b.g.isOwed(w, o, node) {
			return owed
		}
		return ordinary
	}
	return by
}

// needOf is what vertex v needs. Who waits for a semaphore, or for the other end of a file, is to
// blame as if it had no known owner, if nobody there is.
func (b *blame) needOf(n *node, v int32, waiting bool) needs {
	vague := waiting && n.wait != nil && slices.ContainsFunc(n.wait.Owners, func(o waits.Owner) bool { return o.Relation == waits.Last || isEnd(o.Relation) })
	switch {
	case b.stand(v) || (!waiting || vague) && !b.g.isProcess(b.thread(v)) && b.g.blames(b.thread(v), b.way(v)):
		return never
	case !waiting:
		return nothing
	case n.wait == nil || n.wait.AnyOwner:
		return someone
	}
	return everyone
}
