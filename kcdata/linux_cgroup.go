package kcdata

// Control groups with a thread in the file, and what their memory controller says of them, read
// after the release. Structs and ids follow the rules of linux.go.
const (
	TypeLinuxCgroup       Type = 0x4C22 // array of LinuxCgroup, top level after the tasks
	TypeLinuxCgroupsTaken Type = 0x4C23 // LinuxCgroupsTaken, top level after the tasks; absent if no control group was looked for
	TypeLinuxMemoryCgroup Type = 0x4C4F // string, in TASK, from /proc/PID/cgroup: the path in the memory controller's hierarchy, if that is one of version 1; else LINUX_CGROUP_PATH is the memory's group too
)

// Presence bits of LinuxCgroup.Present: which values were read. Those that a version does not
// have are never set.
const (
	CgroupHasID        = 1 << 0  // id
	CgroupHasCurrent   = 1 << 1  // current
	CgroupHasMax       = 1 << 2  // max
	CgroupHasHigh      = 1 << 3  // high; version 2
	CgroupHasSoft      = 1 << 4  // soft; version 1
	CgroupHasSwap      = 1 << 5  // swap; version 1: memory and swap together
	CgroupHasSwapMax   = 1 << 6  // swap_max; version 1: likewise
	CgroupHasEvents    = 1 << 7  // low_events, high_events, max_events, oom_events; version 2
	CgroupHasFails     = 1 << 8  // max_events is memory.failcnt; version 1
	CgroupHasOOMKill   = 1 << 9  // oom_kill
	CgroupHasGroupKill = 1 << 10 // oom_group_kill; version 2
	CgroupHasPressure  = 1 << 11 // some_*, full_*; version 2
	CgroupHasOOM       = 1 << 12 // CgroupUnderOOM and CgroupNoOOMKill say something; version 1
)

// Bits of LinuxCgroup.Flags.
const (
	CgroupUnderOOM  = 1 << 0 // its threads sleep until memory is freed in it, or somebody raises its limit
	CgroupNoOOMKill = 1 << 1 // the OOM killer is off in it: who needs more memory than the limit sleeps
	CgroupAbove     = 1 << 2 // no thread of the file is in it, but in a group below it
)

// Outcomes in LinuxCgroup: why what is missing is missing.
const (
	CgroupRead   = 0 // read; a value without its presence bit is one that this kernel or version does not have
	CgroupGone   = 1 // removed before it was read
	CgroupDenied = 2 // a file of it may not be read
	CgroupLate   = 3 // a file of it did not answer in time, or no time was left for it
	CgroupHidden = 4 // it is not below what is mounted here
	CgroupFailed = 5 // other: errno; EINVAL: a file of it is of another form than this version knows
)

// CgroupUnlimited is a limit that is none ("max").
const CgroupUnlimited = 1<<64 - 1

// CgroupNoParent is LinuxCgroup.Parent of a group above which none is in the file.
const CgroupNoParent = 1<<32 - 1

// LinuxCgroup is a control group and its memory. Groups with a thread in the file are there, and
// of those above them, up to the root, the ones with a limit, those that could not be read,
// and those whose memory controller counts for groups below that have none. They are sorted by version and path, so that a group
// stands behind those above it. Memory in bytes; events are those of the group's whole life, and
// with version 2 of the groups below it too.
type LinuxCgroup struct {
	Present      uint32 `kc:"present"` // CgroupHas*
	Version      uint16 `kc:"version"` // of the hierarchy that has the memory controller: 1 or 2
	Outcome      uint16 `kc:"outcome"` // Cgroup outcomes
	Path         uint32 `kc:"path"`    // offset in LINUX_STRINGS
	Parent       uint32 `kc:"parent"`  // number, from 0, of the next group above it that is in the array; all ones: none is
	Flags        uint32 `kc:"flags"`   // Cgroup bits
	Errno        uint32 `kc:"errno"`   // of the first file that could not be read
	Tasks        uint32 `kc:"tasks"`   // processes of the file in this very group
	Threads      uint32 `kc:"threads"`
	ID           uint64 `kc:"id"` // inode; version 2: as in LinuxTask.cgroup_id
	Current      uint64 `kc:"current"`
	Max          uint64 `kc:"max"`      // all ones: no limit
	High         uint64 `kc:"high"`     // likewise: above it the kernel slows the group down and reclaims
	Soft         uint64 `kc:"soft"`     // likewise: memory.soft_limit_in_bytes
	Swap         uint64 `kc:"swap"`     // version 1: memory and swap
	SwapMax      uint64 `kc:"swap_max"` // likewise; all ones: no limit
	LowEvents    uint64 `kc:"low_events"`
	HighEvents   uint64 `kc:"high_events"`
	MaxEvents    uint64 `kc:"max_events"` // how often it was about to exceed max
	OOMEvents    uint64 `kc:"oom_events"`
	OOMKill      uint64 `kc:"oom_kill"` // processes of it that the OOM killer has killed
	OOMGroupKill uint64 `kc:"oom_group_kill"`
	SomeAvg10    uint32 `kc:"some_avg10"` // 1/100 % of the last 10 s in which some threads waited for memory
	SomeAvg60    uint32 `kc:"some_avg60"`
	FullAvg10    uint32 `kc:"full_avg10"` // likewise, all threads that were not idle
	FullAvg60    uint32 `kc:"full_avg60"`
	SomeTotalUs  uint64 `kc:"some_total_us"`
	FullTotalUs  uint64 `kc:"full_total_us"`
}

// Bits of LinuxCgroupsTaken.Flags: what was not done.
const (
	CgroupsNoMemory   = 1 << 0 // no hierarchy with a memory controller is mounted here
	CgroupsNoPressure = 1 << 1 // version 1, or a kernel without PSI
	CgroupsTimeUp     = 1 << 2 // its time was up before all was read
	CgroupsHung       = 1 << 3 // a read did not end in time
)

// LinuxCgroupsTaken sums up the reading of control groups.
type LinuxCgroupsTaken struct {
	Flags    uint32 `kc:"flags"`   // Cgroups*
	Version  uint32 `kc:"version"` // of the hierarchy that has the memory controller; 0: not known
	Tasks    uint32 `kc:"tasks"`   // processes whose group was asked for
	Unknown  uint32 `kc:"unknown"` // of these, those whose group could not be read, not counting those that had ended
	Groups   uint32 `kc:"groups"`  // groups with a thread in the file
	Above    uint32 `kc:"above"`   // groups above them that are in the file
	Read     uint32 `kc:"read"`    // of all that are in the file, CgroupRead
	Gone     uint32 `kc:"gone"`    // likewise, CgroupGone, and so on
	Denied   uint32 `kc:"denied"`
	Late     uint32 `kc:"late"`
	Hidden   uint32 `kc:"hidden"`
	Failed   uint32 `kc:"failed"`
	Rest     uint32 `kc:"rest"` // groups with a thread that are not in the file: it has those with the most threads
	Reserved uint32 `kc:"reserved"`
	AtNs     uint64 `kc:"at_ns"`    // CLOCK_MONOTONIC when the first one was read
	TotalNs  uint64 `kc:"total_ns"` // of all that was read for it
}
