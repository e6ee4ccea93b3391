package hang

import "stackshot/internal/waitgraph"

// Bounds of a tree: the lines, the threads below one thread, and the levels.
const (
	treeLines = 32
	treeWidth = 8
	treeDepth = 8
)

// tree is what is shown of a list of branches: those near the root first, and how many
// victims stand below whom without being shown.
type tree struct {
	branches []waitgraph.Branch
	below    map[int][]int // of a branch (-1: the root) those that are shown below it, in order
	left     map[int]int   // of a branch how many victims below it are not shown
}

// prune chooses what is shown. It needs no stack, for a chain may have a million threads.
func prune(branches []waitgraph.Branch) *tree {
	t := &tree{branches: branches, below: map[int][]int{}, left: map[int]int{}}
	size := make([]int, len(branches)) // victims at and below a branch
	for i := len(branches) - 1; i >= 0; i-- {
		if branches[i].Victim {
			size[i]++
		}
		if up := branches[i].Up; up >= 0 {
			size[up] += size[i]
		}
	}
	shown := map[int]bool{-1: true}
	for depth := range treeDepth {
		for i := range branches {
			up := branches[i].Up
			if branches[i].Depth == depth && shown[up] && len(shown) <= treeLines && len(t.below[up]) < treeWidth {
				shown[i] = true
				t.below[up] = append(t.below[up], i)
			}
		}
	}
	for i := range branches {
		if up := branches[i].Up; !shown[i] && shown[up] {
			t.left[up] += size[i]
		}
	}
	return t
}

// walk calls line for the branches that are shown below one (-1: the root), and more for how
// many victims are not. The levels go inwards.
func (t *tree) walk(at, depth int, line func(depth int, b *waitgraph.Branch), more func(depth, n int)) {
	for _, i := range t.below[at] {
		line(depth, &t.branches[i])
		t.walk(i, depth+1, line, more)
	}
	if n := t.left[at]; n > 0 {
		more(depth, n)
	}
}
