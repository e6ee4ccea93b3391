package waitgraph

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"stackshot/internal/waits"
)

// text is all of a verdict, in its order.
func text(v *Verdict) string {
	out := fmt.Sprintln(numbers(v.Starved), v.Unaged)
	tree := func(bs []Branch) {
		for _, b := range bs {
			out += fmt.Sprintln(" ", number(b.Wait.Thread), name(b.Owner), b.Up, b.Depth, b.Victim)
		}
	}
	for _, d := range v.Deadlocks {
		out += fmt.Sprintln(d.Confidence, numbers(d.Cycle), numbers(d.Part), numbers(d.Behind))
		tree(d.Tree)
	}
	for _, c := range v.Culprits {
		out += fmt.Sprintln(name(c.Owner), c.Wait != nil, c.Reason, numbers(c.Victims), numbers(c.Shared))
		tree(c.Tree)
	}
	for _, c := range v.Convoys {
		out += fmt.Sprintln(c.Resource, numbers(c.Waiters))
		for _, o := range c.Owners {
			out += name(o) + "\n"
		}
	}
	return out
}

func name(o waits.Owner) string { return fmt.Sprint(o.Pid, o.Tid, o.Relation, o.Dead) }

// TestI5: waits and owners in any order give the same verdict.
func TestI5(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 13))
	for i := range 3000 {
		w := made(2+i%80, random(r))
		want := text(Judge(w.w, Options{}))
		for range 3 {
			r.Shuffle(len(w.w.All), func(i, j int) { w.w.All[i], w.w.All[j] = w.w.All[j], w.w.All[i] })
			for _, x := range w.w.All {
				r.Shuffle(len(x.Owners), func(i, j int) { x.Owners[i], x.Owners[j] = x.Owners[j], x.Owners[i] })
			}
			if got := text(Judge(w.w, Options{})); got != want {
				t.Fatalf("graph %d: another order, another verdict:\n%s\n%s", i, want, got)
			}
		}
	}
}
