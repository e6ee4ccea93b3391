package waitgraph

// needs says what a vertex needs to go on.
type needs byte

const (
	nothing  needs = iota // it can act
	everyone              // all its targets must act: AND
	someone               // one of its targets must act: OR
	never                 // it cannot act
)

// stuck returns the greatest set of vertices that can never go on: it begins with all, and
// takes out who can go on, until nothing changes. A vertex without edges goes on unless its
// need is never. rev is d.reverse(). Each edge is looked at once.
func stuck(d, rev *digraph, need []needs) []bool {
	in, left := make([]bool, d.len()), make([]int, d.len()) // left: targets that are in
	var free []int32
	for v := range in {
		left[v] = len(d.out(int32(v)))
		in[v] = need[v] == never || need[v] != nothing && left[v] > 0
		if !in[v] {
			free = append(free, int32(v))
		}
	}
	for len(free) > 0 {
		v := free[len(free)-1]
		free = free[:len(free)-1]
		for _, u := range rev.out(v) {
			left[u]--
			if in[u] && (need[u] == someone || need[u] == everyone && left[u] == 0) {
				in[u] = false
				free = append(free, u)
			}
		}
	}
	return in
}
