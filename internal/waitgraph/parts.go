package waitgraph

// parts gives each vertex the number of its strongly connected part (Tarjan, "Depth-first
// search and linear graph algorithms", 1972), without recursion: a cycle of a million threads
// must not use up a stack.
func parts(d *digraph) (part []int32, count int) {
	n := d.len()
	index, low := make([]int32, n), make([]int32, n) // index: 1 + order of discovery; 0: not found yet
	part = make([]int32, n)
	edge := make([]int, n) // the next edge of each vertex on the path
	var path, open []int32 // path: from the root to here; open: found and in no part yet
	for v := range part {
		part[v] = -1
	}
	found := int32(0)
	for root := range n {
		if index[root] != 0 {
			continue
		}
		path = append(path, int32(root))
		for len(path) > 0 {
			v := path[len(path)-1]
			if index[v] == 0 {
				found++
				index[v], low[v], edge[v] = found, found, d.off[v]
				open = append(open, v)
			}
			down := false
			for ; edge[v] < d.off[v+1]; edge[v]++ {
				t := d.to[edge[v]]
				if index[t] == 0 {
					path, down = append(path, t), true
					break
				}
				if part[t] < 0 {
					low[v] = min(low[v], low[t])
				}
			}
			if down {
				continue
			}
			path = path[:len(path)-1]
			if low[v] == index[v] {
				for last := int32(-1); last != v; {
					last = open[len(open)-1]
					open = open[:len(open)-1]
					part[last] = int32(count)
				}
				count++
			}
		}
	}
	return part, count
}
