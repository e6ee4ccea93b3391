package waitgraph

import (
	"slices"

	"stackshot/internal/model"
	"stackshot/internal/waits"
	"stackshot/kcdata"
)

// Policies of LinuxThread.Policy whose threads give up their CPU only by themselves
// (include/uapi/linux/sched.h).
const (
	schedFIFO     = 1
	schedRR       = 2
	schedDeadline = 6
)

// isSelf reports whether n is a thread of this program, which is never accused.
func (n *node) isSelf() bool {
	return n.owner.Thread != nil && n.owner.Thread.IsSelf() // its process is, too
}

// held says by what a thread is kept from running at all: Stopped, Traced, Frozen or "".
func (n *node) held() Reason {
	if n.wait != nil {
		switch n.wait.Kind {
		case waits.Stopped:
			return Stopped
		case waits.Traced:
			return Traced
		case waits.Frozen:
			return Frozen
		}
	}
	if n.state.Class != model.Held || n.threads != nil || n.owner.Thread == nil {
		return ""
	}
	switch s := n.owner.Thread.Linux.State; {
	case s&kcdata.StateFrozen != 0:
		return Frozen
	case s&kcdata.StateTraced != 0:
		return Traced
	}
	return Stopped
}

// reason is why n, at which a chain ends, does not go on.
func (g *graph) reason(n *node) Reason {
	switch {
	case n.owner.Dead:
		return Dead
	case n.owner.Thread == nil:
		return Outside
	}
	if r := n.held(); r != "" {
		return r
	}
	switch {
	case g.missed(n):
		return MissedCPU
	case n.wait != nil && n.wait.Kind == waits.CPU:
		return Runnable
	}
	switch n.state.Class {
	case model.Blocked:
		return InD
	case model.Running:
		return Running
	case model.Runnable:
		return Runnable
	case model.Zombie:
		return Dead
	}
	return Asleep
}

// missed reports whether n ran on a CPU that did not come to the stop.
func (g *graph) missed(n *node) bool {
	return slices.ContainsFunc(g.missedCPUs, func(c *kcdata.LinuxCPU) bool {
		return c.Flags&kcdata.CPURanKnown != 0 && c.RanTid != 0 && uint64(c.RanTid) == n.owner.Thread.ID ||
			n.state.Class == model.Running && c.CPU == n.owner.Thread.Linux.CPU
	})
}

// blames reports whether v is to blame if a chain ends at it. After a lock everybody
// is, since others wait for what it holds; but one that sleeps or stands for less than MinWait
// is not: it may hold the lock for a moment, after many others; nor is one that goes on soon.
// Who owes an answer is while it runs, or sleeps for long where no request can reach it. For
// ordinary work (I7) only who cannot do it is, and has not been able to for long: a thread that
// strace(1) watches is stopped at each of its calls.
func (g *graph) blames(v int32, by way) bool {
	n := &g.nodes[v]
	if n.isSelf() {
		return false
	}
	long := n.wait == nil || g.old(n.wait)
	switch r := g.reason(n); {
	case by == locked && r == Asleep && g.goesOnSoon(v):
		return false
	case r == Stopped || r == Traced || r == Frozen || by == locked && (r == Asleep || r == InD):
		return long
	case by == locked || by == owed && r.wantsCPU():
		return true
	case by == owed && r == Asleep:
		return n.wait != nil && long && !goesOn(n.wait) && (!sleepsAtFile(n.wait.Kind) || isAbroad(n.wait))
	case r == InD:
		return n.wait != nil && long && !n.wait.Kind.RestsInD()
	default:
		return r == Dead && n.owner.Dead // a zombie's other threads may do the work
	}
}

// wantsCPU reports whether a thread has a CPU, or waits for one.
func (r Reason) wantsCPU() bool { return r == Running || r == Runnable || r == MissedCPU }

// keepsCPU reports whether o, which is node, keeps w's thread from its CPU: w has waited MinWait, and o waits for
// nothing, is of a policy that gives up its CPU only by itself, and of no lower priority.
func (g *graph) keepsCPU(w *waits.Wait, o waits.Owner, node int32) bool {
	if isAbsent(o) || isProcess(o) || o.Thread.IsSelf() || !g.old(w) || node < g.waiting {
		return false
	}
	l := &o.Thread.Linux
	realTime := l.Policy == schedFIFO || l.Policy == schedRR || l.Policy == schedDeadline
	return realTime && l.Prio <= w.Thread.Linux.Prio
}
