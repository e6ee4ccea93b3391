package kcdata

import "slices"

// Snapshot is a decoded stackshot: plain data, from which the reports and the wait graph are
// made. A field is nil or zero if the file does not hold it. Where zero could also be a
// value, a Has field or a presence bit of the L records (linux.go) tells the two apart. The
// tag of a field names the item that fills it.
type Snapshot struct {
	Delta        bool               // the file has the magic of a delta stackshot
	Partial      bool               // not all of the file was read: it breaks off, is damaged or too large
	HasMachine   bool               // the file holds Machine
	HasCapture   bool               // the file holds Capture
	Machine      LinuxMachine       `item:"LINUX_MACHINE"` // RealtimeNs also from USECS_SINCE_EPOCH
	Capture      LinuxCapture       `item:"LINUX_CAPTURE"`
	Hostname     string             `item:"LINUX_HOSTNAME"`
	Release      string             `item:"LINUX_RELEASE"` // uname -r
	Version      string             `item:"OSVERSION"`     // uname -v
	Arch         string             `item:"LINUX_ARCH"`    // uname -m
	BootID       string             `item:"LINUX_BOOT_ID"`
	BootArgs     string             `item:"BOOTARGS"`           // kernel command line
	Engine       string             `item:"LINUX_ENGINE"`       // pull, procfs, trap
	Isolation    string             `item:"LINUX_ISOLATION"`    // irqoff, preemptoff, fifo, none
	Request      string             `item:"LINUX_REQUEST"`      // the requested scope, in words
	ToolVersion  string             `item:"LINUX_TOOL_VERSION"` // of the program that wrote the file
	Loadavg      string             `item:"LINUX_LOADAVG"`      // /proc/loadavg
	Meminfo      string             `item:"LINUX_MEMINFO"`      // /proc/meminfo
	Pressure     string             `item:"LINUX_PRESSURE"`
	PageSize     uint32             // bytes; 0: not in the file
	KernelBuild  []byte             // GNU build-id of vmlinux
	Timebase     *Timebase          `item:"TIMEBASE"`
	Duration     *Duration          `item:"STACKSHOT_DURATION"` // in ticks of Timebase
	CPUs         []LinuxCPU         `item:"LINUX_CPU"`
	LatencyCPUs  []LatencyCPU       `item:"LATENCY_INFO_CPU"`
	Latency      *LatencyCollection `item:"LATENCY_INFO"`      // in ticks of Timebase
	Atomicity    *LinuxAtomicity    `item:"LINUX_ATOMICITY"`   // nil: nothing was read twice
	UserTaken    *LinuxUserTaken    `item:"LINUX_USER_TAKEN"`  // nil: no user stack was taken
	WaitTaken    *LinuxWaitTaken    `item:"LINUX_WAIT_TAKEN"`  // nil: waits were not recorded
	FilesTaken   *LinuxFilesTaken   `item:"LINUX_FILES_TAKEN"` // nil: open files were not recorded
	Ends         []LinuxEnd         `item:"LINUX_END"`
	FileLocks    []LinuxFileLock    `item:"LINUX_FILE_LOCK"`
	Mounts       []LinuxMount       `item:"LINUX_MOUNT"`
	Devices      []LinuxDevice      `item:"LINUX_DEVICE"`
	FUSE         []LinuxFUSE        `item:"LINUX_FUSE"`
	CgroupsTaken *LinuxCgroupsTaken `item:"LINUX_CGROUPS_TAKEN"` // nil: control groups were not looked for
	Cgroups      []*Cgroup          // by version and path, so that a group stands behind those above it
	Panic        *LinuxPanic        `item:"LINUX_PANIC"` // nil: neither a panic nor a SysRq began the capture
	Ran          []LinuxRan         `item:"LINUX_RAN"`
	Phases       []LinuxPhases      `item:"LINUX_PHASES"`
	Arenas       []LinuxArena       `item:"LINUX_ARENA"`
	Tries        []LinuxTry         `item:"LINUX_TRY"`
	Trace        []LinuxTrace       `item:"LINUX_TRACE"` // nil: not kept
	Warnings     []Warning
	LeftOut      []LinuxLeftOut `item:"LINUX_LEFT_OUT"`
	Modules      []Module
	Symbols      *SymbolTable // never nil after ParseSnapshot
	Tasks        []*Task      // in file order

	// Problems are the reader's own findings: things that the file should not hold (the
	// same task twice, an array that cannot be decoded), and what a delta lacks. Bytes behind the end marker are
	// none of them: see File.Follows. Each is a sentence. The data
	// concerned is kept as far as it is sound.
	Problems []string
}

// Warning is one warning the capture wrote, "code: text".
type Warning struct {
	Code string // "" if the item has no code
	Text string
}

// Codes of warnings that reports treat apart.
const (
	WarningNotRoot    = "not_root"            // an ordinary user took the file, so nothing was stopped
	WarningUserStacks = "user_stacks_refused" // engine procfs could not read the stacks of some processes
)

// Module is one loaded kernel module.
type Module struct {
	Name    string
	Addr    uint64
	Size    uint64
	BuildID []byte // nil: not known
}

// Task is one thread group: a process, or the group of a kernel thread.
type Task struct {
	ID            uint64 // container id: tgid; 0 is the kernel's idle task
	Transitioning bool   // past its exit point
	Name          string // ts_p_comm, or tts_p_comm where Transitioning
	HasSnapshot   bool
	Snapshot      TaskSnapshot               `item:"TASK_SNAPSHOT"`               // zero where Transitioning
	Exiting       *TransitioningTaskSnapshot `item:"TRANSITIONING_TASK_SNAPSHOT"` // only where Transitioning
	HasLinux      bool
	Linux         LinuxTask        `item:"LINUX_TASK"`
	Memory        *LinuxTaskMemory `item:"LINUX_TASK_MEMORY"`
	NS            *LinuxTaskNS     `item:"LINUX_TASK_NS"`
	Exe           *LinuxTaskExe    `item:"LINUX_TASK_EXE"`
	ExePath       string           `item:"PROC_PATH,LINUX_EXE_PATH"`
	Cmdline       []string
	Cgroup        string           `item:"LINUX_CGROUP_PATH"`
	MemoryCgroup  string           `item:"LINUX_MEMORY_CGROUP"` // version 1: in the hierarchy of the memory controller; "": Cgroup is that of memory
	EnrichFailed  []string         // "what: reason"
	Latency       *LatencyTask     `item:"LATENCY_INFO_TASK"` // in ticks of Timebase; nil: not measured
	Mappings      []Mapping        // executable mappings, ascending; those from the window only if /proc gave none
	MapWalk       *LinuxMapWalk    `item:"LINUX_MAP_WALK"` // nil: the window did not record its mappings
	PerfMap       string           `item:"LINUX_PERF_MAP"` // path of its perf map; "" if it has none
	UserSymbols   *UserSymbolTable // nil: no address has a name
	WaitInfo      []ThreadWaitinfo `item:"THREAD_WAITINFO"` // Apple's form of what its threads wait for
	Threads       []*Thread
}

// Thread is one thread of a Task.
type Thread struct {
	ID          uint64 // container id: tid; 1<<32|n is CPU n's idle thread
	Name        string `item:"THREAD_NAME"`
	HasSnapshot bool
	Snapshot    ThreadSnapshot `item:"THREAD_SNAPSHOT"`
	HasLinux    bool
	Linux       LinuxThread     `item:"LINUX_THREAD"`
	Times       *CPUTimes       `item:"CPU_TIMES"`
	Kernel      []uint64        // return addresses, leaf first
	User        []uint64        // return addresses, leaf first
	UserHow     []byte          // a UserFrame* for each address in User; nil: not known
	UserWalk    *LinuxUserWalk  `item:"LINUX_USER_WALK"`
	UserChain   []LinuxUserLink `item:"LINUX_USER_CHAIN"` // the raw frame-pointer chain, if it was kept
	UserBytes   []UserBytes     // raw pieces of the stack, if they were kept
	Syscall     *LinuxSyscall   `item:"LINUX_SYSCALL"`
	IO          *LinuxThreadIO  `item:"LINUX_THREAD_IO"`
	Delays      *LinuxDelays    `item:"LINUX_DELAYS"`
	Wait        *LinuxWait      `item:"LINUX_WAIT"`   // nil: nothing to say, or not recorded
	Futexes     []LinuxFutex    `item:"LINUX_FUTEX"`  // words that it waits for in a futex call
	Files       []LinuxFile     `item:"LINUX_FILE"`   // open files that it waits at
	Sockets     []LinuxSocket   `item:"LINUX_SOCKET"` // those of Files that are sockets
	Signals     *LinuxSignals   `item:"LINUX_SIGNALS"`
	NS          []LinuxThreadNS `item:"LINUX_THREAD_NS"` // outermost first
	Registers   []uint64        // user registers in the order of LinuxRegister; nil: none, or redacted
	Sample      *LinuxSample    `item:"LINUX_SAMPLE"`        // nil: the stop took its stacks, or it has none
	Latency     *LatencyThread  `item:"LATENCY_INFO_THREAD"` // in ticks of Timebase; nil: not measured
	Wchan       string          `item:"LINUX_WCHAN"`         // "" if the file has none
}

// IdleThreadID is the container id of a CPU's idle thread.
func IdleThreadID(cpu uint32) uint64 { return 1<<32 | uint64(cpu) }

// IsIdle reports whether t is a CPU's idle thread.
func (t *Thread) IsIdle() bool {
	return t.Linux.Present&ThreadIsIdle != 0 || t.ID>>32 == 1
}

// IsSelf reports whether t is one of the snapshotter's own threads.
func (t *Thread) IsSelf() bool { return t.Linux.Present&ThreadIsSelf != 0 }

// IsSelf reports whether t is one of the snapshotter's own tasks.
func (t *Task) IsSelf() bool { return t.Linux.Present&TaskIsSelf != 0 }

// IsKernel reports whether t has no user space: the group of a kernel thread, or the idle
// task.
func (t *Task) IsKernel() bool {
	return t.ID == 0 || t.Linux.Present&TaskIsKernel != 0
}

// FileName returns the last component of the executable's path, as the kernel keeps it.
func (e *LinuxTaskExe) FileName() string { return cString(e.Name[:]) }

// CPU returns the record of CPU n; ok is false if the file has none.
func (s *Snapshot) CPU(n uint32) (cpu *LinuxCPU, ok bool) {
	for i := range s.CPUs {
		if s.CPUs[i].CPU == n {
			return &s.CPUs[i], true
		}
	}
	return nil, false
}

// OtherKernel reports whether s is of another kernel than Linux, as Apple's stackshots are: it has tasks, and
// none of Linux's records.
func (s *Snapshot) OtherKernel() bool {
	return len(s.Tasks) > 0 && s.Engine == "" && s.Release == "" && !s.HasMachine && !slices.ContainsFunc(s.Tasks, func(t *Task) bool {
		return t.HasLinux || slices.ContainsFunc(t.Threads, func(t *Thread) bool { return t.HasLinux })
	})
}

// ThreadCount returns the number of threads of all tasks.
func (s *Snapshot) ThreadCount() int {
	n := 0
	for _, t := range s.Tasks {
		n += len(t.Threads)
	}
	return n
}
