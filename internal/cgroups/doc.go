// Package cgroups reads, right after the release, the memory of the control groups that the tasks of
// a capture are in, and of the groups above them.
//
//	/proc/PID/cgroup of each task ─► groups, each with its tasks and threads
//	mountinfo                     ─► the directory of each group, in this process's namespaces
//	its files memory.*            ─► kcdata.LinuxCgroup
//
// Parsing and reading are separate, as in package procfs. All reading together ends within
// Looker.Budget, whatever hangs. First come the groups with the most threads, each with those above it. What
// was not read, and why, is in the record of each group and in the sums of kcdata.LinuxCgroupsTaken.
//
// A group counts for the groups below it, so one with few threads of its own may be the one at its
// limit. In version 2 a group may have no memory controller: then the next one above it that has one
// counts for it. In version 1 a group counts for those below it only with memory.use_hierarchy, which
// kernels from 5.11 on always have.
package cgroups
