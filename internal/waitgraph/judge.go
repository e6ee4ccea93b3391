package waitgraph

import (
	"cmp"
	"slices"
	"time"

	"stackshot/internal/waits"
)

// Judge finds what hangs in w. Errors: none; a graph of any shape ends.
//
// Deadlocks come first by their threads and those behind them. Culprits come by rank: in D,
// then stopped, traced and frozen ones, then others, then those that only keep a CPU. Within
// a rank more victims come first; among those in D the oldest, and those with victims before
// those without. A victim that reaches several culprits is listed with the first by (rank,
// age, tgid, tid), and the others have it in Shared if it waits for them directly. Nothing is
// found in a file without records of waits: who is to blame could be anybody.
func Judge(w *waits.Waits, o Options) *Verdict {
	g := newGraph(w, cmp.Or(max(o.MinWait, 0), time.Second))
	v := &Verdict{Waits: w}
	all, deadlocks := g.deadlocks(w.OneInstant)
	g.findQueues(all.stuck)
	b := g.newBlame(all.stuck)
	if culprits := b.culprits(); !w.Unrecorded {
		v.Deadlocks, v.Culprits, v.Convoys = deadlocks, culprits, g.convoys()
		v.Pools = g.pools
	}
	v.Starved = b.starved()
	for i := range g.waiting {
		if !g.nodes[i].wait.Age.Known {
			v.Unaged++
		}
	}
	return v
}

// starved are those who have waited for a CPU, a lock or room in a pipe, and nobody is to blame for it.
func (b *blame) starved() []*waits.Wait {
	var out []int32
	for v := range b.g.waiting {
		w := b.g.nodes[v].wait
		if b.g.queued[v] || b.g.turn[v] || b.stand(v) || b.isVictim(v) || !b.g.old(w) {
			continue // told elsewhere, or young
		}
		if w.Kind == waits.CPU || b.end[v] == nil && (isHeld(w) || isFullPipe(w)) {
			out = append(out, v)
		}
	}
	slices.SortFunc(out, b.g.longestFirst)
	return b.g.waitsOf(out)
}

// isHeld reports whether w is for something that a known thread holds, or for a lock that somebody does.
func isHeld(w *waits.Wait) bool {
	if len(w.Owners) == 0 {
		return isLock(w.Kind)
	}
	return (!w.AnyOwner || w.Kind == waits.FileLock) && slices.ContainsFunc(w.Owners, func(o waits.Owner) bool { return o.Relation == waits.Holds })
}

// isFullPipe reports whether w is for room in a pipe that somebody reads.
func isFullPipe(w *waits.Wait) bool { return w.Kind == waits.Pipe && forRoom(w) && len(w.Owners) > 0 }
