package waitgraph

import "slices"

const (
	exactPart = 256 // threads of a part up to which each is tried as a start
	bigStarts = 16  // starts in a bigger part
)

// finder finds short cycles. Its arrays are made once for all parts.
type finder struct {
	d     *digraph
	part  []int32 // of each vertex; a cycle stays in one
	seen  []int32 // the number of the search that saw the vertex last
	prev  []int32 // by which vertex that search came
	queue []int32
	tries int32
}

func newFinder(d *digraph, part []int32) *finder {
	return &finder{d: d, part: part, seen: make([]int32, d.len()), prev: make([]int32, d.len())}
}

// shortest returns a shortest cycle through members, which are ascending and of which each is
// on a cycle, beginning with its lowest vertex. Deadlock.Cycle says when it is only short.
func (f *finder) shortest(members []int32) []int32 {
	if len(members) > exactPart {
		members = members[:bigStarts]
	}
	var best []int32
	for _, v := range members {
		if c := f.through(v, best); c != nil {
			best = c
		}
	}
	at := slices.Index(best, slices.Min(best))
	return slices.Concat(best[at:], best[:at])
}

// through is the shortest cycle through v that is shorter than best (nil: any); nil if there
// is none.
func (f *finder) through(v int32, best []int32) []int32 {
	f.tries++
	f.queue = append(f.queue[:0], v)
	f.seen[v] = f.tries
	for depth, i, end := 1, 0, 1; i < len(f.queue); i++ {
		if i == end {
			depth, end = depth+1, len(f.queue)
		}
		if best != nil && depth >= len(best) {
			return nil
		}
		u := f.queue[i]
		for _, t := range f.d.out(u) {
			if t == v {
				return f.way(v, u)
			}
			if f.part[t] == f.part[v] && f.seen[t] != f.tries {
				f.seen[t], f.prev[t] = f.tries, u
				f.queue = append(f.queue, t)
			}
		}
	}
	return nil
}

// way is the path that the last search took from v to u.
func (f *finder) way(v, u int32) []int32 {
	path := []int32{u}
	for u != v {
		u = f.prev[u]
		path = append(path, u)
	}
	slices.Reverse(path)
	return path
}
