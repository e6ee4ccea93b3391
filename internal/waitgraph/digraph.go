package waitgraph

import "slices"

// digraph has the edges of vertex v in to[off[v]:off[v+1]]. They are sorted by target, so that
// the order of the input does not show. via says for each edge which edge of the wait it is.
type digraph struct {
	off []int
	to  []int32
	via []int32
}

// add appends vertex len(off)-1 with its edges, each target<<32 | via. edges is sorted.
func (d *digraph) add(edges []uint64) {
	slices.Sort(edges)
	for _, e := range edges {
		d.to, d.via = append(d.to, int32(e>>32)), append(d.via, int32(uint32(e)))
	}
	d.off = append(d.off, len(d.to))
}

func (d *digraph) len() int            { return len(d.off) - 1 }
func (d *digraph) out(v int32) []int32 { return d.to[d.off[v]:d.off[v+1]] }

// reverse has every edge turned round; via stays that of the edge.
func (d *digraph) reverse() *digraph {
	r := &digraph{off: make([]int, d.len()+1), to: make([]int32, len(d.to)), via: make([]int32, len(d.to))}
	for _, t := range d.to {
		r.off[t+1]++
	}
	for v := range d.len() {
		r.off[v+1] += r.off[v]
	}
	next := slices.Clone(r.off)
	for v := range d.len() {
		for e := d.off[v]; e < d.off[v+1]; e++ {
			t := d.to[e]
			r.to[next[t]], r.via[next[t]] = int32(v), d.via[e]
			next[t]++
		}
	}
	return r
}

// within has only the edges between vertices of set. It has all vertices.
func (d *digraph) within(set []bool) *digraph {
	in := &digraph{off: make([]int, 1, len(d.off))}
	for v := range d.len() {
		for e := d.off[v]; set[v] && e < d.off[v+1]; e++ {
			if set[d.to[e]] {
				in.to, in.via = append(in.to, d.to[e]), append(in.via, d.via[e])
			}
		}
		in.off = append(in.off, len(in.to))
	}
	return in
}
