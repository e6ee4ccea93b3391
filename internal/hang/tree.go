package hang

import (
	"stackshot/internal/waits"
	"stackshot/kcdata"
)

// node is who stands in a tree: a thread, or the number of one that the file does not have.
type node struct {
	thread *kcdata.Thread
	tid    uint32 // if thread is nil
}

func nodeOf(o *waits.Owner) node {
	if o.Thread != nil {
		return node{thread: o.Thread}
	}
	return node{tid: o.Tid}
}

// forest says who waits below whom. Each wait stands in it once, below the first root from
// which it is reached.
type forest struct {
	below  map[node][]*waits.Wait // in the order in which they came
	size   map[*waits.Wait]int    // waits below this one, and itself
	apart  []*waits.Wait          // those that no root reaches
	picked map[*waits.Wait]bool   // those that walk shows
	opener map[node]*waits.Wait   // below which of its waits a thread's waiters stand; nil: it is a root
}

// grow makes the forest of list below roots. It takes no more stack for a chain of a million.
func grow(roots []node, list []*waits.Wait) *forest {
	waiters := make(map[node][]*waits.Wait)
	for _, w := range list {
		for i := range w.Owners {
			n := nodeOf(&w.Owners[i])
			waiters[n] = append(waiters[n], w)
		}
	}
	f := &forest{below: make(map[node][]*waits.Wait), size: make(map[*waits.Wait]int, len(list))}
	f.opener = make(map[node]*waits.Wait, len(list))
	parent := make(map[*waits.Wait]*waits.Wait, len(list))
	f.picked = make(map[*waits.Wait]bool, treeLines)
	type step struct {
		at    node
		by    *waits.Wait // nil: a root
		depth int
	}
	queue := make([]step, 0, len(list)+len(roots))
	open := func(s step) {
		if _, ok := f.opener[s.at]; !ok {
			f.opener[s.at] = s.by
			queue = append(queue, s)
		}
	}
	for _, r := range roots {
		open(step{at: r})
	}
	var order []*waits.Wait
	for ; len(queue) > 0; queue = queue[1:] {
		s := queue[0]
		for _, w := range waiters[s.at] {
			if f.size[w] > 0 {
				continue
			}
			f.size[w], parent[w] = 1, s.by
			f.below[s.at] = append(f.below[s.at], w)
			if len(f.picked) < treeLines && len(f.below[s.at]) <= treeWidth && s.depth < treeDepth && (s.by == nil || f.picked[s.by]) {
				f.picked[w] = true
			}
			order = append(order, w)
			open(step{node{thread: w.Thread}, w, s.depth + 1})
		}
	}
	for i := len(order) - 1; i >= 0; i-- { // leaves first
		if p := parent[order[i]]; p != nil {
			f.size[p] += f.size[order[i]]
		}
	}
	for _, w := range list {
		if f.size[w] == 0 {
			f.size[w] = 1
			f.apart = append(f.apart, w)
		}
	}
	return f
}

// Bounds of a tree: the lines, the threads below one thread, and the levels.
const (
	treeLines = 32
	treeWidth = 8
	treeDepth = 8
)

// walk calls line for the picked waits below the nodes of a level, and once more for how many
// others there are, those below them included.
func (f *forest) walk(level []node, depth int, line func(depth int, w *waits.Wait), more func(depth, n int)) {
	left := 0
	for _, at := range level {
		for _, w := range f.below[at] {
			if !f.picked[w] {
				left += f.size[w]
				continue
			}
			line(depth, w)
			if n := (node{thread: w.Thread}); f.opener[n] == w {
				f.walk([]node{n}, depth+1, line, more)
			}
		}
	}
	if left > 0 {
		more(depth, left)
	}
}
