package waitgraph

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"stackshot/internal/model"
	"stackshot/internal/waits"
	"stackshot/kcdata"
)

// oracle is a world by the definitions, for at most 7 threads: sets are bits.
type oracle struct {
	w     *world
	wait  [7]*waits.Wait
	count int
}

func newOracle(w *world) *oracle {
	o := &oracle{w: w, count: len(w.threads)}
	for _, wait := range w.w.All {
		if !wait.Thread.IsSelf() {
			o.wait[number(wait.Thread)] = wait
		}
	}
	return o
}

// live are the threads of a process that have not ended.
func (o *oracle) live(t *kcdata.Task) (set int) {
	for _, th := range t.Threads {
		if model.StateOf(th).Class != model.Zombie {
			set |= 1 << number(th)
		}
	}
	return set
}

// endsByItself is I10's: a wait for the next request, or with a timeout at files where nobody owes anything.
func endsByItself(w *waits.Wait) bool {
	if w.File != nil && w.File.Says == waits.Serves {
		return true
	}
	for _, o := range w.Owners {
		if o.Owes || !slices.Contains(endRelations, o.Relation) {
			return false
		}
	}
	return (w.Timed || w.File != nil && w.File.Others > 0) && len(w.Owners) > 0
}

// ownEnd is I10's: the process has the other end of its own poll, or catches signals.
func ownEnd(w *waits.Wait, o waits.Owner) bool {
	if o.Task != w.Task || !slices.Contains(endRelations, o.Relation) {
		return false
	}
	return w.Kind == waits.Poll || w.File != nil && (w.File.File.Op == kcdata.FileOpPoll || w.File.File.Flags&kcdata.FileCatches != 0 ||
		w.File.File.Kind == kcdata.FileFIFO && w.File.File.OFlags == 2)
}

// target is somebody whom a thread waits for: a thread, or a process with these live threads.
type target struct {
	set   int
	whole bool
}

// targets are those that t waits for; free: one of the owners can act whatever they do.
func (o *oracle) targets(t int, sure bool) (all []target, free bool) {
	w := o.wait[t]
	for _, owner := range w.Owners {
		blocks := !owner.Dead && owner.Thread != nil && owner.Relation != waits.Runs && !endsByItself(w) && !ownEnd(w, owner) && (w.File == nil || w.File.Others == 0)
		to := target{whole: owner.Whole}
		switch {
		case !blocks:
		case owner.Whole:
			to.set = o.live(owner.Task)
			blocks = to.set != 0
		default:
			to.set = 1 << number(owner.Thread)
			u := o.wait[number(owner.Thread)]
			blocks = u != nil
			if blocks && owner.Relation == waits.Tracer {
				for _, of := range u.Owners {
					blocks = blocks && of.Relation != waits.Child
				}
			}
		}
		if sure && (w.Timed || w.Confidence != waits.Sure || w.When != waits.Window || owner.Relation == waits.Last ||
			w.File != nil && w.File.File.Flags&kcdata.FileCatches != 0 || slices.Contains(endRelations, owner.Relation) && !oneEnd(w, owner)) {
			blocks = false
		}
		if blocks {
			all = append(all, to)
		} else {
			free = true
		}
	}
	return all, free
}

// oneEnd: nobody else can have the other end, or open it.
func oneEnd(w *waits.Wait, o waits.Owner) bool {
	serves := o.Relation == waits.Server || o.Relation == waits.Pager
	kind := uint32(kcdata.FileOther)
	if w.File != nil {
		kind = w.File.File.Kind
	}
	closed := kind == kcdata.FilePipe || kind == kcdata.FileSocket || kind == kcdata.FileOther && serves
	return closed && o.Task != w.Task && w.Kind != waits.Poll && (w.File == nil || w.File.File.Op != kcdata.FileOpPoll)
}

// standstill tries every set of threads: it is the union of those in which nobody can go on.
func (o *oracle) standstill(sure bool) (union int) {
	var targets [7][]target
	var frees [7]bool
	for t := range o.count {
		if o.wait[t] != nil {
			targets[t], frees[t] = o.targets(t, sure)
		}
	}
	for set := range 1 << o.count {
		ok := true
		for t := 0; ok && t < o.count; t++ {
			if set>>t&1 == 0 {
				continue
			}
			if o.wait[t] == nil {
				ok = false
				continue
			}
			in := 0
			for _, to := range targets[t] {
				if to.set&^set == 0 {
					in++
				}
			}
			if o.wait[t].AnyOwner {
				ok = in > 0 && in == len(targets[t]) && !frees[t]
			} else {
				ok = in > 0
			}
		}
		if ok {
			union |= set
		}
	}
	return union
}

// steps are those from a to each thread of set: a process is one more (I3). 0: there is none.
func (o *oracle) steps(a, set int, sure bool) (d [7]int) {
	all, _ := o.targets(a, sure)
	for _, to := range all {
		for b := range o.count {
			switch {
			case to.set&^set != 0 || to.set>>b&1 == 0:
			case !to.whole:
				d[b] = 1
			case d[b] == 0:
				d[b] = 2
			}
		}
	}
	return d
}

// distances has the steps from each thread of set to each, within set: 0 if there is no way.
func (o *oracle) distances(set int, sure bool) (d [7][7]int) {
	for a := range o.count {
		if set>>a&1 == 1 {
			d[a] = o.steps(a, set, sure)
		}
	}
	for by := range o.count {
		for a := range o.count {
			for b := range o.count {
				if d[a][by] > 0 && d[by][b] > 0 && (d[a][b] == 0 || d[a][by]+d[by][b] < d[a][b]) {
					d[a][b] = d[a][by] + d[by][b]
				}
			}
		}
	}
	return d
}

// shortestIn is the length of the shortest cycle through a thread of part; 0: there is none.
func (o *oracle) shortestIn(part int, d [7][7]int) (best int) {
	for t := range o.count {
		if part>>t&1 == 1 && d[t][t] > 0 && (best == 0 || d[t][t] < best) {
			best = d[t][t]
		}
	}
	return best
}

// length is that of a cycle, with its processes.
func (o *oracle) length(cycle []*waits.Wait, stuck, sure int, isSure bool) (n int) {
	if isSure {
		stuck = sure
	}
	for i, a := range cycle {
		n += o.steps(number(a.Thread), stuck, isSure)[number(cycle[(i+1)%len(cycle)].Thread)]
	}
	return n
}

func bits(ws []*waits.Wait) (set int) {
	for _, w := range ws {
		set |= 1 << number(w.Thread)
	}
	return set
}

// checkDeadlocks holds v against the definitions.
func checkDeadlocks(w *world, v *Verdict) error {
	o := newOracle(w)
	stuck, sure := o.standstill(false), o.standstill(true)
	d, dSure := o.distances(stuck, false), o.distances(sure, true)
	parts, behind := map[int]bool{}, stuck
	for t := range o.count {
		if d[t][t] == 0 {
			continue
		}
		part := 0
		for u := range o.count {
			if d[t][u] > 0 && d[u][t] > 0 {
				part |= 1 << u
			}
		}
		parts[part] = true
		behind &^= part
	}
	if len(parts) != len(v.Deadlocks) {
		return fmt.Errorf("I2: %d deadlocks, by definition %d", len(v.Deadlocks), len(parts))
	}
	for _, dl := range v.Deadlocks {
		part := bits(dl.Part)
		if !parts[part] {
			return fmt.Errorf("I1: %b is no strongly connected part with a cycle", part)
		}
		delete(parts, part)
		want, isSure := o.shortestIn(part, d), false
		if n := o.shortestIn(part, dSure); n > 0 && w.w.OneInstant {
			want, isSure = n, true
		}
		if o.length(dl.Cycle, stuck, sure, isSure) != want || isSure != (dl.Confidence == waits.Sure) {
			return fmt.Errorf("I3: cycle %v, %s; shortest %d, sure %v", numbers(dl.Cycle), dl.Confidence, want, isSure)
		}
		for i, a := range dl.Cycle {
			next := number(dl.Cycle[(i+1)%len(dl.Cycle)].Thread)
			within := stuck
			if isSure {
				within = sure
			}
			if o.steps(number(a.Thread), within, isSure)[next] == 0 || number(a.Thread) < number(dl.Cycle[0].Thread) {
				return fmt.Errorf("I1: %v is no cycle from its lowest thread on", numbers(dl.Cycle))
			}
		}
		own := bits(dl.Behind)
		if own&^behind != 0 {
			return fmt.Errorf("I4: behind %b of %b", own, behind)
		}
		behind &^= own
		for _, b := range dl.Behind {
			if !slices.ContainsFunc(dl.Part, func(p *waits.Wait) bool { return d[number(b.Thread)][number(p.Thread)] > 0 }) {
				return fmt.Errorf("I4: %d does not wait for the deadlock it is behind", number(b.Thread))
			}
		}
		if err := checkTree(dl.Tree, dl.Behind, func(owner waits.Owner) bool {
			if owner.Whole {
				return part&o.live(owner.Task) != 0
			}
			return part>>number(owner.Thread)&1 == 1
		}); err != nil {
			return err
		}
	}
	if behind != 0 {
		return fmt.Errorf("I4: %b can never go on, and is behind nothing", behind)
	}
	return nil
}

// checkTree: a tree is in order, follows true edges, and has the victims it should.
func checkTree(tree []Branch, victims []*waits.Wait, root func(o waits.Owner) bool) error {
	var marked []*waits.Wait
	for i, b := range tree {
		if !slices.ContainsFunc(b.Wait.Owners, func(o waits.Owner) bool { return o == b.Owner }) {
			return fmt.Errorf("branch %d: not an owner of its wait", i)
		}
		switch {
		case b.Depth == 0 && (b.Up != -1 || !root(b.Owner)),
			b.Depth > 0 && (b.Up < 0 || b.Up >= i || tree[b.Up].Depth != b.Depth-1 || tree[b.Up].Wait.Thread != b.Owner.Thread && !(b.Owner.Whole && tree[b.Up].Wait.Task == b.Owner.Task)),
			b.Depth > 0 && tree[i-1].Depth < b.Depth-1:
			return fmt.Errorf("branch %d: %+v hangs in the air", i, b)
		}
		if b.Victim {
			marked = append(marked, b.Wait)
		}
	}
	if bits(marked) != bits(victims) || len(marked) != len(victims) {
		return fmt.Errorf("the tree's victims are %v, the list's %v", numbers(marked), numbers(victims))
	}
	return nil
}

// random is a source for made.
func random(r *rand.Rand) func() int { return func() int { return r.IntN(256) } }

// TestI1ToI4 holds deadlocks of random small graphs against brute force.
func TestI1ToI4(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 13))
	found, sure, behind, whole, sureWhole := 0, 0, 0, 0, 0
	for i := range 20_000 {
		w := made(7, random(r))
		v := Judge(w.w, Options{})
		if err := checkDeadlocks(w, v); err != nil {
			t.Fatalf("graph %d: %v\n%s", i, err, dump(w))
		}
		for _, d := range v.Deadlocks {
			found++
			behind += len(d.Behind)
			if d.Confidence == waits.Sure {
				sure++
			}
			if throughProcess(d.Cycle) {
				if whole++; d.Confidence == waits.Sure {
					sureWhole++
				}
			}
		}
	}
	if found < 1000 || sure < 100 || behind < 1000 || whole < 100 || sureWhole < 10 {
		t.Errorf("only %d deadlocks, %d sure, %d behind, %d through processes, of these %d sure: the graphs prove little", found, sure, behind, whole, sureWhole)
	}
}

// throughProcess reports whether a cycle needs a process as a whole.
func throughProcess(cycle []*waits.Wait) bool {
	for i, w := range cycle {
		if !waitsFor(w, cycle[(i+1)%len(cycle)]) {
			return true
		}
	}
	return false
}
