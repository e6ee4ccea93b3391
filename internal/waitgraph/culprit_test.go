package waitgraph

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"stackshot/internal/model"
	"stackshot/internal/waits"
	"stackshot/kcdata"
)

// Where a chain may be: at a thread, by ordinary work or by a lock. -1 is the owner that is not in
// the file, -2 one that died.
type spot struct {
	thread int
	locked bool
	dead   bool
}

// blameOracle says by the rules of doc.go who is to blame.
type blameOracle struct {
	*oracle
	w       *world
	stuck   int // in a standstill
	spots   []spot
	blocked map[spot]bool
}

func longEnough(w *waits.Wait) bool {
	return w != nil && w.Age.Known && w.Age.Ns >= uint64(time.Second) && w.When != waits.NotAtOne
}

// next are the spots to which s leads; nil: s is an end.
func (b *blameOracle) next(s spot) (out []spot) {
	if s.thread < 0 || s.dead || b.wait[s.thread] == nil || b.stuck>>s.thread&1 == 1 || b.heldUp(s.thread) {
		return nil
	}
	w := b.wait[s.thread]
	for _, o := range w.Owners {
		to := spot{thread: -1, locked: s.locked, dead: o.Dead}
		if o.Thread != nil {
			to.thread = number(o.Thread)
		}
		switch o.Relation {
		case waits.Tracer:
			if w.AnyOwner {
				return nil
			}
			continue
		case waits.Holds:
			to.locked = longEnough(w)
		case waits.Last:
			to.locked = false
		case waits.Runs:
			to.locked = true
			if o.Dead || o.Thread == nil || o.Thread.IsSelf() || b.wait[number(o.Thread)] != nil || !longEnough(w) || o.Thread.Linux.Policy != schedFIFO || o.Thread.Linux.Prio > w.Thread.Linux.Prio {
				if w.AnyOwner {
					return nil
				}
				continue
			}
		}
		out = append(out, to)
	}
	return out
}

func (b *blameOracle) heldUp(t int) bool {
	w := b.wait[t]
	return w != nil && (w.Kind == waits.Stopped || w.Kind == waits.Traced || w.Kind == waits.Frozen) ||
		model.StateOf(b.w.threads[t]).Class == model.Held
}

// guilty reports whether an end is to blame.
func (b *blameOracle) guilty(s spot) bool {
	switch {
	case s.thread >= 0 && b.w.threads[s.thread].IsSelf():
		return false
	case s.dead:
		return true
	case s.thread < 0:
		return s.locked
	}
	w := b.wait[s.thread]
	runs := w != nil && w.Kind == waits.CPU || b.missed(s.thread)
	inD := model.StateOf(b.w.threads[s.thread]).Class == model.Blocked && !runs && longEnough(w) &&
		w.Kind != waits.AtRest && w.Kind != waits.Vfork && w.Kind != waits.Timer
	class := model.StateOf(b.w.threads[s.thread]).Class
	if s.locked && w != nil && (b.heldUp(s.thread) || !runs && (class == model.Sleeping || class == model.Idle || class == model.Parked || class == model.Blocked)) {
		return longEnough(w)
	}
	return s.locked || b.heldUp(s.thread) && (w == nil || longEnough(w)) || inD
}

func (b *blameOracle) missed(t int) bool {
	return model.StateOf(b.w.threads[t]).Class == model.Running &&
		slices.ContainsFunc(b.w.w.CPUs, func(c kcdata.LinuxCPU) bool { return int(c.CPU) == t })
}

// cannotGoOn is the rule for one spot, if those of set cannot.
func (b *blameOracle) cannotGoOn(s spot, set func(spot) bool) bool {
	if s.thread >= 0 && !s.dead && b.stuck>>s.thread&1 == 1 {
		return true
	}
	next := b.next(s)
	if len(next) == 0 {
		return b.guilty(s)
	}
	w := b.wait[s.thread]
	last := slices.ContainsFunc(w.Owners, func(o waits.Owner) bool { return o.Relation == waits.Last })
	in := 0
	for _, n := range next {
		if set(n) {
			in++
		}
	}
	return last && b.guilty(s) || w.AnyOwner && in == len(next) || !w.AnyOwner && in > 0
}

// solve tries every set of spots.
func (b *blameOracle) solve() {
	for t := range b.count {
		for _, locked := range []bool{false, true} {
			b.spots = append(b.spots, spot{thread: t, locked: locked})
		}
	}
	b.blocked = map[spot]bool{}
	index := map[spot]int{}
	for i, s := range b.spots {
		index[s] = i
	}
	for set := range 1 << len(b.spots) {
		member := func(s spot) bool {
			if i, ok := index[s]; ok {
				return set>>i&1 == 1
			}
			return b.guilty(s)
		}
		ok := true
		for i, s := range b.spots {
			if set>>i&1 == 1 && !b.cannotGoOn(s, member) {
				ok = false
				break
			}
		}
		for i, s := range b.spots {
			if ok && set>>i&1 == 1 {
				b.blocked[s] = true
			}
		}
	}
}

func (b *blameOracle) isBlocked(s spot) bool {
	if s.thread < 0 || s.dead {
		return b.guilty(s)
	}
	return b.blocked[s]
}

// goesOn are the spots of s's chain that count.
func (b *blameOracle) goesOn(s spot) []spot {
	next := b.next(s)
	if len(next) > 0 && b.wait[s.thread].AnyOwner && slices.ContainsFunc(next, func(n spot) bool { return !b.isBlocked(n) }) {
		return nil
	}
	return slices.DeleteFunc(next, func(n spot) bool {
		return !b.isBlocked(n) || n.thread >= 0 && !n.dead && b.stuck>>n.thread&1 == 1
	})
}

// ends walks every simple path from s.
func (b *blameOracle) ends(s spot, path []spot, found map[spot]bool) {
	if slices.Contains(path, s) {
		return
	}
	next := b.goesOn(s)
	if len(next) == 0 {
		found[spot{thread: s.thread, dead: s.dead}] = true
	}
	for _, n := range next {
		b.ends(n, append(path[:len(path):len(path)], s), found)
	}
}

// spotOf is what ends names a culprit.
func spotOf(c *Culprit) spot {
	s := spot{thread: -1, dead: c.Owner.Dead}
	if c.Owner.Thread != nil {
		s.thread = number(c.Owner.Thread)
	}
	return s
}

// place in the order in which culprits take victims.
func before(a, b *Culprit) bool {
	kind := func(c *Culprit) int {
		switch c.Reason {
		case InD:
			return 0
		case Stopped, Traced, Frozen:
			return 1
		}
		return 2
	}
	return kind(a) < kind(b)
}

// queued reports whether t waits for a lock in a convoy.
func (b *blameOracle) queued(t int) bool {
	n := 0
	for u, w := range b.wait {
		if w != nil && isLock(w.Kind) && w.Resource.ID != 0 && longEnough(w) && b.stuck>>u&1 == 0 && isLock(b.wait[t].Kind) && w.Resource == b.wait[t].Resource {
			n++
		}
	}
	return n >= 4
}

// checkCulprits holds v against the rules.
func checkCulprits(w *world, v *Verdict) error {
	b := &blameOracle{oracle: newOracle(w), w: w}
	b.stuck = b.standstill(false)
	b.solve()
	want, reaches := map[spot]bool{}, map[int]map[spot]bool{}
	for t := range b.count {
		s := spot{thread: t}
		if b.wait[t] == nil || !b.isBlocked(s) || b.stuck>>t&1 == 1 {
			continue
		}
		if len(b.goesOn(s)) == 0 && model.StateOf(w.threads[t]).Class == model.Blocked && !b.heldUp(t) && b.guilty(s) && !b.queued(t) {
			want[s] = true
		}
		if len(b.goesOn(s)) > 0 && longEnough(b.wait[t]) {
			reaches[t] = map[spot]bool{}
			b.ends(s, nil, reaches[t])
			for end := range reaches[t] {
				want[end] = true
			}
		}
	}
	by := map[spot]*Culprit{}
	for _, c := range v.Culprits {
		if by[spotOf(c)] != nil || !want[spotOf(c)] {
			return fmt.Errorf("I6: %+v is accused; should be: %v", spotOf(c), want)
		}
		by[spotOf(c)] = c
	}
	if len(by) != len(want) {
		return fmt.Errorf("I6: %d are accused, should be %v", len(by), want)
	}
	listed := 0
	for _, c := range v.Culprits {
		for _, victim := range c.Victims {
			ends := reaches[number(victim.Thread)]
			listed |= 1 << number(victim.Thread)
			if !ends[spotOf(c)] {
				return fmt.Errorf("I6: %d is no victim of %+v", number(victim.Thread), spotOf(c))
			}
			for end := range ends {
				if c.Owner.Relation != waits.Runs && by[end].Owner.Relation != waits.Runs && before(by[end], c) {
					return fmt.Errorf("I6: %d is listed with %v before %v", number(victim.Thread), c.Reason, by[end].Reason)
				}
			}
			if chain := chainOf(c.Tree, victim); chain[0].Wait != victim || spotOf(&Culprit{Owner: chain[len(chain)-1].Owner}) != spotOf(c) {
				return fmt.Errorf("the chain of %d does not lead to its culprit", number(victim.Thread))
			}
			delete(reaches, number(victim.Thread))
		}
		for _, x := range c.Shared {
			leads := func(n spot) bool { return n.thread == spotOf(c).thread && n.dead == spotOf(c).dead }
			t := number(x.Thread)
			if !slices.ContainsFunc(append(b.goesOn(spot{thread: t}), b.goesOn(spot{thread: t, locked: true})...), leads) ||
				slices.ContainsFunc(c.Tree, func(b Branch) bool { return b.Wait == x }) {
				return fmt.Errorf("%d does not share %+v", t, spotOf(c))
			}
		}
		if err := checkTree(c.Tree, c.Victims, func(o waits.Owner) bool { return spotOf(&Culprit{Owner: o}) == spotOf(c) }); err != nil {
			return err
		}
	}
	if len(reaches) > 0 {
		return fmt.Errorf("I6: victims not listed, or twice: %v; listed %b", reaches, listed)
	}
	return nil
}

// TestI6 holds chains of random small graphs against brute force: every set, every path.
func TestI6(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 13))
	reasons, between, shared := map[Reason]int{}, 0, 0
	for i := range 6000 {
		w := made(5, random(r))
		v := Judge(w.w, Options{})
		if err := checkCulprits(w, v); err != nil {
			t.Fatalf("graph %d: %v\n%s", i, err, dump(w))
		}
		for _, c := range v.Culprits {
			reasons[c.Reason]++
			shared += len(c.Shared)
			between += len(c.Tree) - len(c.Victims)
		}
	}
	for _, want := range []Reason{Running, Runnable, InD, Stopped, Traced, Frozen, Dead, Asleep, Outside, MissedCPU} {
		if reasons[want] < 5 {
			t.Errorf("%d culprits %s: the graphs prove little", reasons[want], want)
		}
	}
	if between < 20 || shared < 20 {
		t.Errorf("%d threads between, %d shared: the graphs prove little", between, shared)
	}
}

// dump is w as text, for a failure.
func dump(w *world) (out string) {
	for _, x := range w.w.All {
		out += fmt.Sprintf("%d: %s any=%v age=%v when=%s state=%v self=%v:", number(x.Thread), x.Kind, x.AnyOwner, x.Age, x.When, x.State.Words, x.Thread.IsSelf())
		for _, o := range x.Owners {
			n := -1
			if o.Thread != nil {
				n = number(o.Thread)
			}
			out += fmt.Sprintf(" %s %d dead=%v", o.Relation, n, o.Dead)
		}
		out += "\n"
	}
	return out
}
