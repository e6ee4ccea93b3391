package topology

import (
	"fmt"
	"io/fs"
	"testing"
	"testing/fstest"
)

// box builds the part of /sys that Read looks at. Each named generator below is
// one machine and tells its story.
type box fstest.MapFS

func (b box) put(name, format string, args ...any) {
	b[name] = &fstest.MapFile{Data: fmt.Appendf(nil, format+"\n", args...)}
}

func (b box) cpu(id int, name, format string, args ...any) {
	b.put(fmt.Sprintf("%s/cpu%d/%s", cpuDir, id, name), format, args...)
}

// cache adds one cache index of a CPU.
func (b box) cache(cpu, index, level int, kind, shared string) {
	dir := fmt.Sprintf("cache/index%d/", index)
	b.cpu(cpu, dir+"level", "%d", level)
	b.cpu(cpu, dir+"type", "%s", kind)
	b.cpu(cpu, dir+"shared_cpu_list", "%s", shared)
}

// x86 adds a CPU as x86 shows it: split L1, an L2 per core, an L3, and as
// "cluster" the CPUs of one L2.
func (b box) x86(id, pkg int, core, l3 string) {
	b.cpu(id, "topology/physical_package_id", "%d", pkg)
	b.cpu(id, "topology/core_cpus_list", "%s", core)
	b.cpu(id, "topology/cluster_cpus_list", "%s", core)
	b.cache(id, 0, 1, "Data", core)
	b.cache(id, 1, 1, "Instruction", core)
	b.cache(id, 2, 2, "Unified", core)
	b.cache(id, 3, 3, "Unified", l3)
}

// arm64 adds a CPU as arm64 shows it: no SMT, a cluster, a capacity.
func (b box) arm64(id int, cluster string, capacity int) {
	b.cpu(id, "topology/physical_package_id", "0")
	b.cpu(id, "topology/core_cpus_list", "%d", id)
	b.cpu(id, "topology/cluster_cpus_list", "%s", cluster)
	b.cpu(id, "cpu_capacity", "%d", capacity)
}

func newBox(present, online string) box {
	b := box{}
	b.put(cpuDir+"/present", "%s", present)
	b.put(cpuDir+"/online", "%s", online)
	b.put(cpuDir+"/isolated", "")
	b.put(cpuDir+"/nohz_full", "(null)")
	return b
}

// smp4: two cores of two threads, one L3.
func smp4() box {
	b := newBox("0-3", "0-3")
	for id := range 4 {
		b.x86(id, 0, fmt.Sprintf("%d,%d", id%2, id%2+2), "0-3")
	}
	return b
}

// twoSocket: two packages of two cores, numbered alternately as BIOSes do.
func twoSocket() box {
	b := newBox("0-3", "0-3")
	for id := range 4 {
		b.x86(id, id%2, fmt.Sprint(id), fmt.Sprintf("%d,%d", id%2, id%2+2))
	}
	return b
}

// hybrid: two P cores with two threads each (0-3), four E cores (4-7) that
// share one L2, all under one L3; the P cores' capacities differ a little.
func hybrid() box {
	b := newBox("0-7", "0-7")
	for id := range 4 {
		b.x86(id, 0, fmt.Sprintf("%d-%d", id&^1, id|1), "0-7")
		b.cpu(id, "cpu_capacity", "%d", 1024-id)
	}
	for id := 4; id < 8; id++ {
		b.x86(id, 0, fmt.Sprint(id), "0-7")
		b.cache(id, 2, 2, "Unified", "4-7")
		b.cpu(id, "topology/cluster_cpus_list", "4-7")
		b.cpu(id, "cpu_capacity", "600")
	}
	b.put("devices/cpu_core/cpus", "0-3")
	b.put("devices/cpu_atom/cpus", "4-7")
	return b
}

// hybridLowPower: as hybrid, but CPU 7 is a low-power core outside the L3.
func hybridLowPower() box {
	b := hybrid()
	b.put("devices/cpu_atom/cpus", "4-6")
	b.put("devices/cpu_lowpower/cpus", "7")
	for id := range 7 {
		b.cache(id, 3, 3, "Unified", "0-6")
	}
	b.cpu(7, "cache/index3/shared_cpu_list", "") // sysfs shows an empty mask
	b.cache(7, 2, 2, "Unified", "7")
	return b
}

// bigLittle: arm64, four little cores (0-3) and two big (4-5), device tree
// without caches.
func bigLittle() box {
	b := newBox("0-5", "0-5")
	for id := range 4 {
		b.arm64(id, "0-3", 446)
	}
	b.arm64(4, "4-5", 1024)
	b.arm64(5, "4-5", 1024)
	return b
}

// dynamIQ: arm64, little (0-3) and big (4-7) in one cluster under one L3.
func dynamIQ() box {
	b := newBox("0-7", "0-7")
	for id := range 8 {
		b.arm64(id, "0-7", 400+624*(id/4))
		b.cache(id, 2, 2, "Unified", fmt.Sprint(id))
		b.cache(id, 3, 3, "Unified", "0-7")
	}
	return b
}

// serverClusters: arm64 server, one L3 over the die, clusters of four cores.
func serverClusters() box {
	b := newBox("0-7", "0-7")
	for id := range 8 {
		b.arm64(id, fmt.Sprintf("%d-%d", id&^3, id|3), 1024)
		b.cache(id, 2, 2, "Unified", fmt.Sprint(id))
		b.cache(id, 3, 3, "Unified", "0-7")
	}
	return b
}

// wideClusters: "clusters" that span two last-level caches, as a firmware that
// fills the table in carelessly says. The caches decide.
func wideClusters() box {
	b := newBox("0-3", "0-3")
	for id := range 4 {
		b.arm64(id, "0-3", 1024)
		b.cache(id, 2, 2, "Unified", fmt.Sprintf("%d-%d", id&^1, id|1))
	}
	return b
}

// offline1: smp4 with CPU 1 taken off line: its directories are gone and it is
// in nobody's list.
func offline1() box {
	b := newBox("0-3", "0,2-3")
	b.x86(0, 0, "0,2", "0,2-3")
	b.x86(2, 0, "0,2", "0,2-3")
	b.x86(3, 0, "3", "0,2-3")
	return b
}

// isolated: smp4 booted with isolcpus=2 nohz_full=2-3. From 6.12 on the control
// groups count what isolcpus isolates as theirs.
func isolated() box {
	b := smp4()
	b.put("fs/cgroup/cpuset.cpus.isolated", "2")
	b.put(cpuDir+"/isolated", "2")
	b.put(cpuDir+"/nohz_full", "2-3")
	return b
}

// partitioned: smp4 with CPU 3 in an isolated cpuset partition.
func partitioned() box {
	b := smp4()
	b.put("fs/cgroup/cpuset.cpus.isolated", "3")
	return b
}

// bare: a virtual machine without caches, clusters or capacities.
func bare() box {
	b := newBox("0-1", "0-1")
	b.cpu(0, "topology/physical_package_id", "0")
	b.cpu(1, "topology/physical_package_id", "1")
	return b
}

// hidden: a container without /sys; /proc/stat is all there is.
func hidden() box { return box{} }

// procStat goes with hidden.
var procStat = fstest.MapFS{"stat": {Data: []byte("cpu  1 2 3 4 5 6 7 0 0 0\ncpu0 1 2 3 4 5 6 7 0 0 0\ncpu2 1 2 3 4 5 6 7 0 0 0\nintr 5\nbtime 1\n")}}

var machines = map[string]func() box{
	"smp4": smp4, "twoSocket": twoSocket, "hybrid": hybrid, "hybridLowPower": hybridLowPower,
	"bigLittle": bigLittle, "dynamIQ": dynamIQ, "serverClusters": serverClusters, "wideClusters": wideClusters,
	"offline1": offline1, "isolated": isolated, "partitioned": partitioned, "bare": bare, "hidden": hidden,
}

func read(t *testing.T, b box) *Topology {
	t.Helper()
	top, err := Read(fs.FS(fstest.MapFS(b)), procStat)
	if err != nil {
		t.Fatal(err)
	}
	return top
}
