package waitgraph

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"stackshot/internal/waits"
)

// oracle is a world by the definitions, for at most 7 threads: sets are bits.
type oracle struct {
	wait  [7]*waits.Wait
	count int
}

func newOracle(w *world) *oracle {
	o := &oracle{count: len(w.threads)}
	for _, wait := range w.w.All {
		if !wait.Thread.IsSelf() {
			o.wait[number(wait.Thread)] = wait
		}
	}
	return o
}

// targets are the threads that t waits for; free: one of the owners can act whatever they do.
func (o *oracle) targets(t int, sure bool) (set int, free bool) {
	w := o.wait[t]
	for _, owner := range w.Owners {
		blocks := !owner.Dead && owner.Thread != nil && owner.Relation != waits.Runs
		if blocks {
			u := o.wait[number(owner.Thread)]
			blocks = u != nil
			if blocks && owner.Relation == waits.Tracer {
				for _, of := range u.Owners {
					blocks = blocks && of.Relation != waits.Child
				}
			}
		}
		if sure && (w.Timed || w.Confidence != waits.Sure || w.When != waits.Window || owner.Relation == waits.Last) {
			blocks = false
		}
		if blocks {
			set |= 1 << number(owner.Thread)
		} else {
			free = true
		}
	}
	return set, free
}

// standstill tries every set of threads: it is the union of those in which nobody can go on.
func (o *oracle) standstill(sure bool) (union int) {
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
			to, free := o.targets(t, sure)
			if o.wait[t].AnyOwner {
				ok = to != 0 && to&^set == 0 && !free
			} else {
				ok = to&set != 0
			}
		}
		if ok {
			union |= set
		}
	}
	return union
}

// distances has the steps from each thread of set to each, within set: 0 if there is no way.
func (o *oracle) distances(set int, sure bool) (d [7][7]int) {
	for range o.count + 1 {
		for a := range o.count {
			if set>>a&1 == 0 {
				continue
			}
			to, _ := o.targets(a, sure)
			for b := range o.count {
				if to&set>>b&1 == 0 {
					continue
				}
				d[a][b] = 1
				for c := range o.count {
					if d[b][c] > 0 && (d[a][c] == 0 || d[b][c]+1 < d[a][c]) {
						d[a][c] = d[b][c] + 1
					}
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
		if len(dl.Cycle) != want || isSure != (dl.Confidence == waits.Sure) {
			return fmt.Errorf("I3: cycle %v, %s; shortest %d, sure %v", numbers(dl.Cycle), dl.Confidence, want, isSure)
		}
		for i, a := range dl.Cycle {
			next := number(dl.Cycle[(i+1)%len(dl.Cycle)].Thread)
			if to, _ := o.targets(number(a.Thread), isSure); to>>next&1 == 0 || number(a.Thread) < number(dl.Cycle[0].Thread) {
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
		if err := checkTree(dl.Tree, dl.Behind, func(o waits.Owner) bool { return part>>number(o.Thread)&1 == 1 }); err != nil {
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
			b.Depth > 0 && (b.Up < 0 || b.Up >= i || tree[b.Up].Depth != b.Depth-1 || tree[b.Up].Wait.Thread != b.Owner.Thread),
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
	found, sure, behind := 0, 0, 0
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
		}
	}
	if found < 1000 || sure < 100 || behind < 1000 {
		t.Errorf("only %d deadlocks, %d sure, %d behind: the graphs prove little", found, sure, behind)
	}
}
