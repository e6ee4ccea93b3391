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
	Unaged    int // waits of which the age is not known: they make no chain and no convoy
}

// Hangs reports whether anything was found.
func (v *Verdict) Hangs() bool { return len(v.Deadlocks)+len(v.Culprits)+len(v.Convoys) > 0 }

// Deadlock is one strongly connected part of the graph.
type Deadlock struct {
	Confidence waits.Confidence
	Cycle      []*waits.Wait // a shortest cycle of the part: each waits for something that the next one has, the last for the first's
	Part       []*waits.Wait // all threads of the part, those of Cycle among them
	Behind     []*waits.Wait // threads that wait, directly or not, for one of Part
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
	Owner   waits.Owner // who it is
	Wait    *waits.Wait // what it waits for itself; nil: nothing
	Reason  Reason
	Victims []*waits.Wait // who waits for it, directly or not, longest first; none: a thread in D that nobody waits for
}

// Convoy is a resource for which many wait.
type Convoy struct {
	Resource waits.Resource
	Waiters  []*waits.Wait // longest first
	Owners   []waits.Owner
}

// Judge finds what hangs in w. Errors: none; a graph of any shape ends.
func Judge(w *waits.Waits, o Options) *Verdict { panic("not written yet") }
