package topology

import "fmt"

// cluster fills Clusters and every CPU's Cluster, by the rule in doc.go.
func (t *Topology) cluster() {
	keyOf := t.clusterRule()
	index := map[string]int{}
	t.Clusters = nil
	for i := range t.CPUs {
		cpu := &t.CPUs[i]
		cpu.Cluster = -1
		if !cpu.Online {
			continue
		}
		key := fmt.Sprintf("%s/%v", keyOf(cpu), cpu.Kind)
		n, ok := index[key]
		if !ok {
			n = len(t.Clusters)
			index[key] = n
			t.Clusters = append(t.Clusters, Cluster{ID: n, Kind: cpu.Kind})
		}
		cpu.Cluster = n
		t.Clusters[n].CPUs = append(t.Clusters[n].CPUs, cpu.ID)
	}
}

// clusterRule picks one rule for the whole machine, so that all CPUs are grouped by
// the same measure.
func (t *Topology) clusterRule() func(*CPU) string {
	clusters, caches := true, true
	for i := range t.CPUs {
		cpu := &t.CPUs[i]
		if !cpu.Online {
			continue
		}
		caches = caches && cpu.lastLevel != nil
		clusters = clusters && len(cpu.siblings) > len(cpu.core) &&
			(cpu.lastLevel == nil || len(intersect(cpu.siblings, cpu.lastLevel)) == len(cpu.siblings))
	}
	switch {
	case clusters:
		return func(c *CPU) string { return FormatCPUList(c.siblings) }
	case caches:
		return func(c *CPU) string { return FormatCPUList(c.lastLevel) }
	}
	return func(c *CPU) string { return fmt.Sprint(c.Package) }
}
