package topology

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// TestClusters is the cluster rule of doc.go on every machine of fixture_test.go:
// clusters as "kind:cpus", in order.
func TestClusters(t *testing.T) {
	want := map[string]string{
		"smp4":           "SMP:0-3",
		"twoSocket":      "SMP:0,2 SMP:1,3",
		"hybrid":         "P:0-3 E:4-7",
		"hybridLowPower": "P:0-3 E:4-6 E:7",
		"bigLittle":      "E:0-3 P:4-5",
		"dynamIQ":        "E:0-3 P:4-7",
		"serverClusters": "SMP:0-3 SMP:4-7",
		"wideClusters":   "SMP:0-1 SMP:2-3",
		"offline1":       "SMP:0,2-3",
		"isolated":       "SMP:0-3",
		"partitioned":    "SMP:0-3",
		"bare":           "SMP:0 SMP:1",
		"hidden":         "SMP:0,2",
	}
	for name, build := range machines {
		top := read(t, build())
		var got []string
		for _, c := range top.Clusters {
			got = append(got, fmt.Sprintf("%v:%s", c.Kind, FormatCPUList(c.CPUs)))
		}
		if s := strings.Join(got, " "); s != want[name] {
			t.Errorf("%s: %s, want %s", name, s, want[name])
		}
		if amp := strings.Contains(want[name], "E:"); top.AMP != amp {
			t.Errorf("%s: AMP %v", name, top.AMP)
		}
	}
}

// checkTopology holds a topology against invariants 1 and 5.
func checkTopology(t *testing.T, top *Topology) {
	t.Helper()
	in := map[int]int{}
	for i, c := range top.Clusters {
		if c.ID != i || len(c.CPUs) == 0 || !slices.IsSorted(c.CPUs) {
			t.Errorf("invariant 5: cluster %d is %+v", i, c)
		}
		for _, id := range c.CPUs {
			in[id]++
			if cpu, ok := top.CPU(id); !ok || cpu.Cluster != i || cpu.Kind != c.Kind {
				t.Errorf("invariant 1: cluster %+v has CPU %+v", c, cpu)
			}
		}
	}
	for i, cpu := range top.CPUs {
		want := 0
		if cpu.Online {
			want = 1
		}
		if in[cpu.ID] != want || (cpu.Cluster >= 0) != cpu.Online {
			t.Errorf("invariant 1: CPU %+v is in %d clusters", cpu, in[cpu.ID])
		}
		if i > 0 && cpu.ID <= top.CPUs[i-1].ID {
			t.Errorf("invariant 5: CPU %d after %d", cpu.ID, top.CPUs[i-1].ID)
		}
		if top.AMP == (cpu.Kind == KindSMP) && cpu.Online {
			t.Errorf("AMP %v with CPU %+v", top.AMP, cpu)
		}
	}
}

func TestInvariant1EveryOnlineCPUInOneCluster(t *testing.T) {
	for name, build := range machines {
		t.Run(name, func(t *testing.T) { checkTopology(t, read(t, build())) })
	}
}

// An attribute that makes no sense is named, not guessed around.
func TestReadNamesTheBadFile(t *testing.T) {
	for _, name := range []string{"/online", "/isolated", "/cpu1/topology/physical_package_id",
		"/cpu1/cache/index3/shared_cpu_list", "/cpu1/cache/index2/level"} {
		b := smp4()
		b.put(cpuDir+name, "7-x")
		_, err := Read(fs.FS(fstest.MapFS(b)), procStat)
		if err == nil || !strings.Contains(err.Error(), "/sys/"+cpuDir+name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Read(fstest.MapFS{}, fstest.MapFS{}); !errors.Is(err, ErrNoOnline) {
		t.Errorf("nothing to read: %v", err)
	}
}

// Cutting any one file out of any machine may change clusters and kinds, but
// never the invariants.
func TestReadSurvivesMissingFiles(t *testing.T) {
	for name, build := range machines {
		for file := range build() {
			b := build()
			delete(b, file)
			t.Run(name+"/"+strings.ReplaceAll(file, "/", "_"), func(t *testing.T) { checkTopology(t, read(t, b)) })
		}
	}
}
