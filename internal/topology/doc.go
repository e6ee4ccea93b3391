// Package topology says which CPUs there are, which belong together, and what
// a capture does with each of them.
//
// Everything is read from an fs.FS rooted at /sys (and one at /proc as a
// fallback), so a fixture can stand in for any machine. Nothing here changes
// the machine; Allowed alone moves a thread, one it made for that and ends.
//
//	Read ──► Topology ──► Plan(Options) ──► Plan{Stop, Work, Left, Main}
//	 sysfs    CPUs, kinds,   --cpus …,        who is held still, who records,
//	          clusters       throttled CPUs   who runs on and why
//
// # Kinds
//
// A machine is asymmetric (AMP) if its online CPUs are of two kinds, else every
// CPU is KindSMP. The kind comes from the first source that there is:
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
//  1. topology/cluster_cpus_list, if for every online CPU it has the CPU in it,
//     lies within the CPU's last-level cache and holds more than one core.
//     That is what tells core clusters apart where one cache serves a whole
//     die (arm64 servers). On most x86 parts "cluster" is the private L2 of
//     one core, too fine to be an arena, and the condition rules it out;
//  2. the CPUs that share the last-level cache: shared_cpu_list of the
//     highest-level cache/indexN whose type is Unified or Data;
//  3. the CPUs of one package (physical_package_id), where there is no cache
//     information.
//
// On AMP the result is split by kind.
//
// # Throttled CPUs
//
// A CPU that the kernel keeps slow because of heat is stopped like any other and
// does not work (ReadThrottles says which those are): the work of a stop would
// warm it, and the others would wait for it. It works if --cpus names it, or if
// every CPU is throttled.
//
// # Invariants
//
//  1. Every online CPU is in exactly one cluster; an offline one in none.
//  2. Stop and Left are disjoint, and together are the online CPUs.
//  3. Work is a subset of Stop and never empty; Main is in Work.
//  4. A CPU in Left has a Reason that is not zero; a CPU in Stop has none.
//  5. Clusters and lists of CPUs ascend; cluster indexes are dense from 0.
package topology
