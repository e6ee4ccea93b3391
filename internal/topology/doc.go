// Package topology finds the CPUs of the machine and their clusters, and decides what
// a capture does with each CPU.
//
// Everything is read from an fs.FS rooted at /sys (and one at /proc as a
// fallback), so a fixture can stand in for any machine. Nothing here changes
// the machine. Only Allowed changes the affinity of a thread, which it makes and ends.
//
//	Read ──► Topology ──► Plan(Options) ──► Plan{Stop, Work, Left, Main}
//	 sysfs    CPUs, kinds,   --cpus …,        CPUs that stop, that record,
//	          clusters       throttled CPUs   that are left running, and why
//
// # Kinds
//
// A machine is asymmetric (AMP) if its online CPUs are of two kinds, else every
// CPU is KindSMP. The kind comes from the first of these sources that the machine has:
//
//  1. /sys/devices/cpu_core/cpus (P), cpu_atom/cpus and cpu_lowpower/cpus (E):
//     the PMUs of Intel's hybrid parts;
//  2. cpuN/cpu_capacity: lower than the machine's largest is E, the largest P.
//
// # Clusters
//
// A cluster is a set of online CPUs that share memory cheaply; it gets one
// arena. It is, in this order:
//
//  1. topology/cluster_cpus_list, if for every online CPU the list has the CPU in it,
//     lies within the CPU's last-level cache and holds more than one core. It
//     tells core clusters apart where one cache serves a whole die (arm64
//     servers). On most x86 parts "cluster" is the private L2 of one core, too
//     small to share an arena, and the condition rules it out;
//  2. the CPUs that share the last-level cache: shared_cpu_list of the
//     highest-level cache/indexN whose type is Unified or Data;
//  3. the CPUs of one package (physical_package_id), if sysfs does not describe
//     the caches.
//
// On AMP the result is split by kind.
//
// # Throttled CPUs
//
// A CPU that the kernel keeps slow because of heat (ReadThrottles) stops like any other
// and does not record: recording would warm it, and the other CPUs would wait for it. It
// records if --cpus names it, or if every CPU is throttled.
//
// # Invariants
//
//  1. Every online CPU is in exactly one cluster; an offline one in none.
//  2. Stop and Left are disjoint, and together are the online CPUs.
//  3. Work is a subset of Stop and never empty; Main is in Work.
//  4. A CPU in Left has a nonzero Reason; a CPU in Stop has none.
//  5. Clusters and lists of CPUs ascend; cluster indexes are dense from 0.
package topology
