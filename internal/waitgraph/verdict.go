package waitgraph

import (
	"time"

	"stackshot/internal/waits"
)

// Options choose what counts.
type Options struct {
	MinWait time.Duration // younger waits make no chain and no convoy; 0: 1 s
}

// Verdict is what a snapshot shows. Its findings are in the order in which they are shown.
type Verdict struct {
	Waits     *waits.Waits
	Deadlocks []*Deadlock
	Culprits  []*Culprit // by rank
	Convoys   []*Convoy
	Pools     []*Convoy     // locks of pools at rest, for which members wait for their turn, and whose Owners wait for the next job: no findings
	Starved   []*waits.Wait // threads that have waited MinWait for a CPU, a lock or room in a pipe, and nobody is to blame, longest first: the machine or the lock is busy, which is no hang
	Unaged    int           // waits of which the age is not known: they make no chain and no convoy
}

// Hangs reports whether anything was found.
func (v *Verdict) Hangs() bool { return len(v.Deadlocks)+len(v.Culprits)+len(v.Convoys) > 0 }

// Deadlock is one strongly connected part of the graph.
type Deadlock struct {
	// Sure: the cycle is of waits that the window read surely and that have no timeout,
	// and the file is of one instant. Likely: all others ("probably").
	Confidence waits.Confidence

	// Cycle is a shortest cycle of the part, if Sure of its sure waits: each waits for
	// something that the next one has, the last for the first's. It begins with the lowest
	// (tgid, tid). In a part of more than 256 threads that is not one cycle as a whole,
	// it is the shortest of the cycles through the first 16 threads that are on one.
	Cycle  []*waits.Wait
	Part   []*waits.Wait // all threads of the part, those of Cycle among them, by (tgid, tid)
	Behind []*waits.Wait // threads that can only go on after one of Part, directly or not, longest first; a thread that is behind several is listed once, with the one of the lowest (tgid, tid)
	Tree   []Branch      // Behind as a tree; its roots wait for threads of Part
}

// Reason is why a thread that others wait for does not go on, by its stable name.
type Reason string

const (
	Running   Reason = "running"
	Runnable  Reason = "runnable" // waits for a CPU
	InD       Reason = "blocked"  // uninterruptible sleep; has no known owner
	Stopped   Reason = "stopped"
	Traced    Reason = "traced"
	Frozen    Reason = "frozen"
	Dead      Reason = "dead"       // died with the lock held
	Asleep    Reason = "asleep"     // in what has no known owner
	Outside   Reason = "outside"    // not in the file
	MissedCPU Reason = "missed_cpu" // ran on a CPU that did not come
)

// Culprit is where chains of waits end.
type Culprit struct {
	Owner   waits.Owner // who it is; its Relation is to one of those who wait for it, "" if nobody does
	Wait    *waits.Wait // what it waits for itself; nil: nothing
	Reason  Reason
	Victims []*waits.Wait // who waits for it, directly or not, longest first; none: a thread in D that nobody waits for
	Shared  []*waits.Wait // who waits for it directly, and also for another culprit, in whose Tree it stands
	Tree    []Branch      // Victims, and those between a victim (also one listed with another culprit) and this culprit, as a tree; its roots wait for the culprit
}

// Convoy is a lock for which many wait, or some and nobody is known to have it.
type Convoy struct {
	Resource waits.Resource
	Waiters  []*waits.Wait // longest first
	Owners   []waits.Owner
}
