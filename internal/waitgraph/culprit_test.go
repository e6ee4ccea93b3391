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

// spot is where a chain may be: at a thread, or at the process of a thread (whole), and how it
// came there. -1 is the owner that is not in the file, -2 one that died.
type spot struct {
	thread int
	by     way
	whole  bool
	dead   bool
}

// blameOracle says by the rules of doc.go who is to blame.
type blameOracle struct {
	*oracle
	stuck   int // in a standstill
	spots   []spot
	nexts   map[spot][]spot
	blocked map[spot]bool
	far     map[spot]int
	strong  map[spot]int
}

func longEnough(w *waits.Wait) bool {
	return w != nil && w.Age.Known && w.Age.Ns >= uint64(time.Second) && w.When != waits.NotAtOne
}

// stands reports whether s is in a standstill.
func (b *blameOracle) stands(s spot) bool {
	switch {
	case s.thread < 0 || s.dead:
		return false
	case s.whole:
		live := b.live(b.w.task(s.thread))
		return live != 0 && live&^b.stuck == 0
	}
	return b.stuck>>s.thread&1 == 1
}

// next are the spots to which s leads; nil: s is an end.
func (b *blameOracle) next(s spot) (out []spot) {
	if s.thread < 0 || s.dead || b.stands(s) {
		return nil
	}
	if s.whole {
		return b.threadsOf(s)
	}
	if b.wait[s.thread] == nil || b.heldUp(s.thread) || endsByItself(b.wait[s.thread]) {
		return nil
	}
	w := b.wait[s.thread]
	for _, o := range w.Owners {
		to := spot{thread: -1, by: s.by, dead: o.Dead}
		if o.Thread != nil {
			to.thread, to.whole = number(o.Thread), o.Whole && !o.Dead
		}
		switch o.Relation {
		case waits.Holds, waits.Server, waits.Pager:
			to.by = ordinary
			if longEnough(w) && (o.Relation != waits.Holds || w.Kind != waits.FileLock && !b.inLine(w)) {
				to.by = locked
			}
		case waits.OtherEnd, waits.Listener:
			to.by = ordinary
			if longEnough(w) && o.Owes && o.Whole && (w.File == nil || w.File.File.Flags != kcdata.FileToWrite) && b.late(w, o) {
				to.by = owed
			}
		case waits.Last:
			to.by = ordinary
		case waits.Runs:
			to.by = locked
		}
		free := o.Relation == waits.Tracer || ownEnd(w, o) || s.by == ordinary && b.traces(w, o) || o.Relation == waits.Runs && (o.Dead || o.Thread == nil || o.Whole ||
			o.Thread.IsSelf() || b.wait[number(o.Thread)] != nil || !longEnough(w) || o.Thread.Linux.Policy != schedFIFO || o.Thread.Linux.Prio > w.Thread.Linux.Prio)
		switch {
		case !free:
			out = append(out, to)
		case w.AnyOwner:
			return nil
		}
	}
	return out
}

// late reports whether what o owes must have been owed for as long as w waits.
func (b *blameOracle) late(w *waits.Wait, o waits.Owner) bool {
	all := func(task *kcdata.Task, ok func(t int) bool) bool {
		for t := range b.count {
			if b.live(task)>>t&1 == 1 && !ok(t) {
				return false
			}
		}
		return true
	}
	sleeps := func(t int) bool {
		class := model.StateOf(b.w.threads[t]).Class
		if w := b.wait[t]; w != nil && class != model.Blocked && (w.Timed || w.Kind == waits.Timer) && !b.heldUp(t) {
			return false
		}
		return b.heldUp(t) || !(b.wait[t] != nil && b.wait[t].Kind == waits.CPU || b.missed(t) || class == model.Running || class == model.Runnable)
	}
	slept := func(t int) bool { return longEnough(b.wait[t]) }
	return o.Relation == waits.Listener || w.File != nil && w.File.Unread > 0 && all(w.Task, slept) || all(o.Task, sleeps)
}

// traces reports whether o is a child that w's process has stopped by ptrace.
func (b *blameOracle) traces(w *waits.Wait, o waits.Owner) bool {
	if o.Relation != waits.Child || o.Dead || o.Thread == nil {
		return false
	}
	t := b.wait[number(o.Thread)]
	return t != nil && t.Kind == waits.Traced && slices.ContainsFunc(t.Owners, func(by waits.Owner) bool { return by.Relation == waits.Tracer && by.Task == w.Task })
}

// inLine reports whether w and all others that wait for the same lock are in the pool of each that has it.
func (b *blameOracle) inLine(w *waits.Wait) bool {
	for _, x := range b.wait {
		if x == nil || x != w && (x.Resource != w.Resource || w.Resource.ID == 0 || !isLock(x.Kind)) {
			continue
		}
		held := false
		for _, o := range x.Owners {
			if held = held || o.Relation == waits.Holds; o.Relation == waits.Holds && !b.inPool(x, o) {
				return false
			}
		}
		if !held {
			return false
		}
	}
	return isLock(w.Kind)
}

// inPool reports whether o has the lock while it waits for a connection, for its own process or
// one of the same parent.
func (b *blameOracle) inPool(w *waits.Wait, o waits.Owner) bool {
	if o.Dead || o.Task == nil || o.Task != w.Task && o.Task.Linux.Ppid != w.Task.Linux.Ppid {
		return false
	}
	for t := range b.count {
		x := b.wait[t]
		if x != nil && x.Task == o.Task && (o.Whole || x.Thread == o.Thread) && b.live(o.Task)>>t&1 == 1 &&
			x.File != nil && x.File.Says == waits.Serves && (x.File.File.Op == kcdata.FileOpAccept || len(x.Thread.Sockets) > 0) {
			return o.Task == w.Task || o.Task.Linux.Ppid > 1
		}
	}
	return false
}

// threadsOf are the live threads of the process at s; of a server those that do not wait for
// the next request, if there are others.
func (b *blameOracle) threadsOf(s spot) (out []spot) {
	var resting []spot
	if b.w.task(s.thread).Threads[0].IsSelf() {
		return nil
	}
	for t := range b.count {
		if b.live(b.w.task(s.thread))>>t&1 == 0 {
			continue
		}
		if b.w.threads[t].IsSelf() {
			return nil
		}
		to := spot{thread: t, by: s.by}
		if w := b.wait[t]; s.by == locked && w != nil && w.File != nil && w.File.Says == waits.Serves {
			resting = append(resting, to)
		} else {
			out = append(out, to)
		}
	}
	if out == nil {
		return resting
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
	case s.dead:
		return s.thread < 0 || !b.w.threads[s.thread].IsSelf()
	case s.thread >= 0 && (s.whole || b.w.threads[s.thread].IsSelf()):
		return false
	case s.thread < 0:
		return s.by == locked
	}
	w := b.wait[s.thread]
	class := model.StateOf(b.w.threads[s.thread]).Class
	runs := w != nil && w.Kind == waits.CPU || b.missed(s.thread) || class == model.Running || class == model.Runnable
	sleeps := !runs && (class == model.Sleeping || class == model.Idle || class == model.Parked)
	inD := class == model.Blocked && !runs && longEnough(w) && w.Kind != waits.AtRest && w.Kind != waits.Vfork && w.Kind != waits.Timer
	switch {
	case b.heldUp(s.thread):
		return w == nil || longEnough(w)
	case s.by == locked && w != nil && (sleeps || !runs && class == model.Blocked):
		return longEnough(w)
	case s.by == owed && sleeps:
		abroad := w != nil && w.Kind == waits.Socket && w.File != nil && w.File.Says == waits.Elsewhere && w.File.File.Op != kcdata.FileOpPoll
		atFile := w != nil && slices.Contains([]waits.Kind{waits.Socket, waits.Poll, waits.AtRest}, w.Kind)
		return longEnough(w) && !endsByItself(w) && (!atFile || abroad || w.Kind != waits.Poll && w.File != nil && w.File.Says == waits.Elsewhere && w.File.File.Op != kcdata.FileOpPoll)
	case s.by == owed && runs:
		return true
	}
	return s.by == locked || inD
}

func (b *blameOracle) missed(t int) bool {
	return model.StateOf(b.w.threads[t]).Class == model.Running &&
		slices.ContainsFunc(b.w.w.CPUs, func(c kcdata.LinuxCPU) bool { return int(c.CPU) == t })
}

// cannotGoOn is the rule for one spot, if those of set cannot.
func (b *blameOracle) cannotGoOn(s spot, set func(spot) bool) bool {
	if b.stands(s) {
		return true
	}
	next := b.nexts[s]
	if len(next) == 0 {
		return b.guilty(s)
	}
	in := 0
	for _, n := range next {
		if set(n) {
			in++
		}
	}
	if s.whole {
		return in == len(next)
	}
	w := b.wait[s.thread]
	return b.vague(s) && b.guilty(s) || w.AnyOwner && in == len(next) || !w.AnyOwner && in > 0
}

// vague: who can end the wait may not be the one.
func (b *blameOracle) vague(s spot) bool {
	return slices.ContainsFunc(b.wait[s.thread].Owners, func(o waits.Owner) bool { return o.Relation == waits.Last || slices.Contains(endRelations, o.Relation) })
}

// solve tries every set of spots of threads. A process cannot go on if none of its threads can.
func (b *blameOracle) solve() {
	b.nexts = map[spot][]spot{}
	index := map[spot]int{}
	for t := range b.count {
		for by := range everyWay {
			s, p := spot{thread: t, by: by}, spot{thread: t, by: by, whole: true}
			index[s] = len(b.spots)
			b.spots = append(b.spots, s)
			b.nexts[s], b.nexts[p] = b.next(s), b.next(p)
		}
	}
	all := 0
	for set := range 1 << len(b.spots) {
		if set|all == all {
			continue
		}
		var member func(s spot) bool
		member = func(s spot) bool {
			if s.whole && s.thread >= 0 {
				return b.cannotGoOn(s, member)
			}
			if i, ok := index[s]; ok {
				return set>>i&1 == 1
			}
			return b.guilty(s)
		}
		ok := true
		for i := 0; ok && i < len(b.spots); i++ {
			ok = set>>i&1 == 0 || b.cannotGoOn(b.spots[i], member)
		}
		if ok {
			all |= set
		}
	}
	b.blocked = map[spot]bool{}
	for i, s := range b.spots {
		b.blocked[s] = all>>i&1 == 1
	}
}

func (b *blameOracle) isBlocked(s spot) bool {
	switch {
	case s.thread < 0 || s.dead:
		return b.guilty(s)
	case s.whole:
		return b.cannotGoOn(s, b.isBlocked)
	}
	return b.blocked[s]
}

// raw are the spots of s's chain that cannot go on either.
func (b *blameOracle) raw(s spot) []spot {
	next := b.next(s)
	any := len(next) > 0 && (s.whole || b.wait[s.thread].AnyOwner)
	if any && slices.ContainsFunc(next, func(n spot) bool { return !b.isBlocked(n) }) {
		return nil
	}
	return slices.DeleteFunc(next, func(n spot) bool { return !b.isBlocked(n) || b.stands(n) })
}

// measure fills b.far and b.strong: steps to an end; strong: to one that is no thread of a
// process that only runs or sleeps. No entry: there is none. Who may be to blame and only leads in a circle
// is an end.
func (b *blameOracle) measure() {
	ends := map[spot]bool{}
	for s := range b.nexts {
		if len(b.raw(s)) == 0 {
			ends[s] = b.isEnd(s)
		}
	}
	first := b.steps(ends, true)
	for s := range b.nexts {
		if _, ok := first[s]; !ok && b.isEnd(s) {
			ends[s] = true
		}
	}
	b.far, b.strong = b.steps(ends, true), b.steps(ends, false)
}

// isEnd reports whether s itself is to blame if it leads nowhere.
func (b *blameOracle) isEnd(s spot) bool {
	return !s.whole && b.guilty(s) && b.isBlocked(s) && !b.stands(s) && (len(b.nexts[s]) == 0 || b.vague(s))
}

func (b *blameOracle) steps(ends map[spot]bool, all bool) map[spot]int {
	far := map[spot]int{}
	for s, yes := range ends {
		if yes {
			far[s] = 0
		}
	}
	for range 100 {
		for s := range b.nexts {
			if _, is := ends[s]; is {
				continue
			}
			for _, n := range b.raw(s) {
				d, ok := far[n]
				if n.thread < 0 || n.dead {
					d, ok = 0, true
				}
				if !ok || !all && s.whole && ends[n] && !b.kept(n) {
					continue
				}
				if old, ok := far[s]; !ok || d+1 < old {
					far[s] = d + 1
				}
			}
		}
	}
	return far
}

func (b *blameOracle) kept(s spot) bool {
	return b.heldUp(s.thread) || model.StateOf(b.w.threads[s.thread]).Class == model.Blocked
}

// goesOn are the spots of s's chain that count: of a process that of one thread.
func (b *blameOracle) goesOn(s spot) []spot {
	if _, ok := b.far[s]; !ok || b.far[s] == 0 {
		return nil
	}
	next := b.raw(s)
	if !s.whole {
		return next
	}
	far := b.far
	if _, ok := b.strong[s]; ok {
		far = b.strong
	}
	var best []spot
	better := func(n, than spot) bool {
		leader := b.w.threads[n.thread] == b.w.task(n.thread).Threads[0]
		return far[n] < far[than] || far[n] == far[than] && leader
	}
	for _, n := range next {
		_, ok := far[n]
		if _, strong := b.strong[s]; strong && far[n] == 0 && !b.kept(n) {
			ok = false
		}
		if ok && (best == nil || better(n, best[0])) {
			best = []spot{n}
		}
	}
	return best
}

// ends walks every simple path from s.
func (b *blameOracle) ends(s spot, path []spot, found map[spot]bool) {
	if slices.Contains(path, s) {
		return
	}
	next := b.goesOn(s)
	if len(next) == 0 && (s.thread < 0 || s.dead || b.isEnd(s)) {
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

// isOwner reports whether o is c, or the process of c.
func isOwner(o waits.Owner, c *Culprit) bool {
	return o.Whole && o.Task == c.Owner.Task || !o.Whole && spotOf(&Culprit{Owner: o}) == spotOf(c)
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
	b := &blameOracle{oracle: newOracle(w)}
	b.stuck = b.standstill(false)
	b.solve()
	b.measure()
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
			if chain := chainOf(c.Tree, victim); chain[0].Wait != victim || !isOwner(chain[len(chain)-1].Owner, c) {
				return fmt.Errorf("the chain of %d does not lead to its culprit", number(victim.Thread))
			}
			delete(reaches, number(victim.Thread))
		}
		for _, x := range c.Shared {
			t := number(x.Thread)
			var direct []spot
			for by := range everyWay {
				for _, n := range b.goesOn(spot{thread: t, by: by}) {
					if direct = append(direct, n); n.whole {
						direct = append(direct, b.goesOn(n)...)
					}
				}
			}
			if !slices.ContainsFunc(direct, func(n spot) bool { return n.thread == spotOf(c).thread && n.dead == spotOf(c).dead }) ||
				slices.ContainsFunc(c.Tree, func(b Branch) bool { return b.Wait == x }) {
				return fmt.Errorf("%d does not share %+v", t, spotOf(c))
			}
		}
		if err := checkTree(c.Tree, c.Victims, func(o waits.Owner) bool { return isOwner(o, c) }); err != nil {
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
	reasons, between, shared, whole := map[Reason]int{}, 0, 0, 0
	for i := range 6000 {
		w := made(4, random(r))
		v := Judge(w.w, Options{})
		if err := checkCulprits(w, v); err != nil {
			t.Fatalf("graph %d: %v\n%s", i, err, dump(w))
		}
		for _, c := range v.Culprits {
			reasons[c.Reason]++
			if c.Owner.Whole {
				whole++
			}
			shared += len(c.Shared)
			between += len(c.Tree) - len(c.Victims)
		}
	}
	for _, want := range []Reason{Running, Runnable, InD, Stopped, Traced, Frozen, Dead, Asleep, Outside, MissedCPU} {
		if reasons[want] < 5 {
			t.Errorf("%d culprits %s: the graphs prove little", reasons[want], want)
		}
	}
	if between < 10 || shared < 20 || whole < 100 {
		t.Errorf("%d threads between, %d shared, %d culprits as processes: the graphs prove little", between, shared, whole)
	}
}

// dump is w as text, for a failure.
func dump(w *world) (out string) {
	for n := range len(w.threads) {
		out += fmt.Sprintf("%d: %v self=%v", n, model.StateOf(w.threads[n]).Words, w.threads[n].IsSelf())
		x := w.w.Of[w.threads[n]]
		if x == nil {
			out += "\n"
			continue
		}
		out += fmt.Sprintf(" %s any=%v age=%v when=%s timed=%v", x.Kind, x.AnyOwner, x.Age, x.When, x.Timed)
		if x.File != nil {
			out += fmt.Sprintf(" file=%s/%d/%x/%d others=%d", x.File.Says, x.File.File.Kind, x.File.File.Flags, x.File.File.Op, x.File.Others)
		}
		for _, o := range x.Owners {
			n := -1
			if o.Thread != nil {
				n = number(o.Thread)
			}
			out += fmt.Sprintf(" %s %d dead=%v whole=%v owes=%v;", o.Relation, n, o.Dead, o.Whole, o.Owes)
		}
		out += "\n"
	}
	return out
}
