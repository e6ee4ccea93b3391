package waitgraph

import (
	"cmp"
	"slices"

	"stackshot/internal/model"
	"stackshot/internal/waits"
)

// Branch is one thread of a tree of waits. A tree stands as a list: each thread is followed by
// those who wait for it, longest first, so that printing it line by line, each indented by its
// Depth, shows the tree.
type Branch struct {
	Wait   *waits.Wait
	Owner  waits.Owner // whom it waits for: at Depth 0 the culprit or a thread of the deadlock, else the thread of Up
	Up     int         // where in the list the branch of Owner is; -1 at Depth 0
	Depth  int
	Victim bool // it is in Victims or Behind; else it only stands between: its wait is young, or for ordinary work
}

// step is a thread that a walk met, before the tree is put in order.
type step struct {
	node   int32 // of graph
	up     int   // the step before it; -1: a root
	via    int32 // which of its edges that is
	victim bool
}

// branches makes the tree of steps, each of which stands behind its up.
func (g *graph) branches(steps []step) []Branch {
	order := make([]int, len(steps)) // by up, then shortest wait first: taken from the end of a list
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(steps[a].up, steps[b].up), g.longestFirst(steps[b].node, steps[a].node))
	})
	first := make([]int, len(steps)+2) // of the steps with up == i-1: where they begin in order
	for _, i := range order {
		first[steps[i].up+2]++
	}
	for i := range len(steps) + 1 {
		first[i+1] += first[i]
	}
	type todo struct{ step, up, depth int }
	var open []todo
	push := func(step, at, depth int) {
		for _, child := range order[first[step+1]:first[step+2]] {
			open = append(open, todo{child, at, depth})
		}
	}
	out := make([]Branch, 0, len(order))
	for push(-1, -1, 0); len(open) > 0; {
		t := open[len(open)-1]
		open = open[:len(open)-1]
		s := &steps[t.step]
		w := g.nodes[s.node].wait
		out = append(out, Branch{Wait: w, Owner: g.owner(s.node, s.via), Up: t.up, Depth: t.depth, Victim: s.victim})
		push(t.step, len(out)-1, t.depth+1)
	}
	return out
}

// longestFirst orders waiting threads for readers.
func (g *graph) longestFirst(a, b int32) int {
	return cmp.Or(model.LongestFirst(g.nodes[a].wait.Age, g.nodes[b].wait.Age), cmp.Compare(a, b))
}
