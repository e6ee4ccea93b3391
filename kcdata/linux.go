package kcdata

// The records that only Linux has: ids 0x4C00-0x4CFF ("L records"). Each struct below is
// the only description of its record: the spec table takes field names, element types and
// offsets from it, the TYPEDEFINITION items of a file are made from it, and a test compares
// the structs of the BPF objects (their BTF) with it. Every field is naturally aligned and
// there is no implicit padding. So the C struct, the packed wire form and this Go struct
// are the same bytes.
//
// Ranges: 0x4C00-3F machine and CPU, 40-7F task, 80-BF thread, C0-DF wait,
// E0-EF sampling, F0-FF counters. Growth: append fields, never change one.
const (
	TypeLinuxMachine      Type = 0x4C00 // LinuxMachine, top level, once
	TypeLinuxHostname     Type = 0x4C01 // string
	TypeLinuxRelease      Type = 0x4C02 // string, uname -r
	TypeLinuxBootID       Type = 0x4C03 // string, /proc/sys/kernel/random/boot_id
	TypeLinuxKernelBuild  Type = 0x4C04 // bytes, GNU build-id of vmlinux
	TypeLinuxLoadavg      Type = 0x4C05 // string, /proc/loadavg
	TypeLinuxMeminfo      Type = 0x4C06 // string, /proc/meminfo
	TypeLinuxPressure     Type = 0x4C07 // string, "cpu some avg10=… \n…", absent without PSI
	TypeLinuxCPU          Type = 0x4C08 // array of LinuxCPU, one per online CPU
	TypeLinuxModule       Type = 0x4C09 // array of LinuxModule
	TypeLinuxCapture      Type = 0x4C0A // LinuxCapture, top level after the tasks
	TypeLinuxEngine       Type = 0x4C0B // string: pull, procfs, trap; panic, sysrq
	TypeLinuxIsolation    Type = 0x4C0C // string: irqoff, preemptoff, fifo, none
	TypeLinuxWarning      Type = 0x4C0D // string "code: text"; repeated
	TypeLinuxLeftOut      Type = 0x4C0E // array of LinuxLeftOut
	TypeLinuxSymbol       Type = 0x4C0F // array of LinuxSymbol
	TypeLinuxStrings      Type = 0x4C10 // bytes, NUL-separated string table of LinuxSymbol, LinuxModule and LinuxCgroup
	TypeLinuxArch         Type = 0x4C11 // string, uname -m
	TypeLinuxToolVersion  Type = 0x4C12 // string, who wrote the file
	TypeLinuxRequest      Type = 0x4C13 // string, scope of the request in words ("--pid 7")
	TypeLinuxAtomicity    Type = 0x4C14 // LinuxAtomicity, top level after the tasks; absent if nothing was read twice
	TypeLinuxRan          Type = 0x4C15 // array of LinuxRan: threads that ran while they were recorded
	TypeLinuxPhases       Type = 0x4C16 // array of LinuxPhases, one per CPU that was stopped
	TypeLinuxArena        Type = 0x4C17 // array of LinuxArena, one per cluster
	TypeLinuxTry          Type = 0x4C18 // array of LinuxTry, in order
	TypeLinuxTrace        Type = 0x4C19 // array of LinuxTrace: the snapshotter's own last events
	TypeLinuxTask         Type = 0x4C40 // LinuxTask, in TASK and TRANSITIONING_TASK
	TypeLinuxTaskMemory   Type = 0x4C41 // LinuxTaskMemory, absent for tasks without an mm
	TypeLinuxTaskNS       Type = 0x4C42 // LinuxTaskNS
	TypeLinuxTaskExe      Type = 0x4C43 // LinuxTaskExe: the kernel's own record of the executable
	TypeLinuxExePath      Type = 0x4C48 // string, /proc/PID/exe, read after the release, if it is too long for PROC_PATH
	TypeLinuxCmdline      Type = 0x4C49 // bytes, /proc/PID/cmdline, NUL-separated, read after the release
	TypeLinuxCgroupPath   Type = 0x4C4A // string, from /proc/PID/cgroup, read after the release: the path in the unified hierarchy, like cgroup_id; without such a hierarchy, in another one
	TypeLinuxEnrichFailed Type = 0x4C4B // string "what: reason"; repeated
	TypeLinuxThread       Type = 0x4C80 // LinuxThread, in THREAD
	TypeLinuxSyscall      Type = 0x4C81 // LinuxSyscall, absent for a thread without user registers
	TypeLinuxThreadIO     Type = 0x4C82 // LinuxThreadIO, absent without CONFIG_TASK_IO_ACCOUNTING
	TypeLinuxDelays       Type = 0x4C83 // LinuxDelays, absent if delay accounting is off
	TypeLinuxSignals      Type = 0x4C84 // LinuxSignals
	TypeLinuxThreadNS     Type = 0x4C85 // array of LinuxThreadNS, absent in the first pid namespace
	TypeLinuxRegisters    Type = 0x4C87 // array of LinuxRegister, absent for a thread without user registers, and with --redact
	TypeLinuxSample       Type = 0x4C88 // LinuxSample, in a THREAD whose stacks its own CPU recorded
	TypeLinuxWchan        Type = 0x4C86 // string, symbol that the thread sleeps in, from /proc (engine procfs only)
)

// LinuxMachine describes the machine. Its clocks were read at the moment that LinuxCapture
// calls stop_ns or, if nothing was stopped, when everything was recorded.
type LinuxMachine struct {
	MonotonicNs   uint64 `kc:"monotonic_ns"`    // CLOCK_MONOTONIC, ns
	BoottimeNs    uint64 `kc:"boottime_ns"`     // CLOCK_BOOTTIME, ns
	RealtimeNs    uint64 `kc:"realtime_ns"`     // CLOCK_REALTIME, ns since the epoch
	TextAddr      uint64 `kc:"text_addr"`       // address of _text; 0: not readable (kptr_restrict)
	PidNS         uint64 `kc:"pid_ns"`          // inode of the recorded pid namespace
	PidNSIsFirst  uint32 `kc:"pid_ns_is_first"` // 1: the machine's first pid namespace; 0: this namespace only
	Redacted      uint32 `kc:"redacted"`        // 1: taken with --redact
	UserHz        uint32 `kc:"user_hz"`         // ticks per second of /proc
	MaxStackDepth uint32 `kc:"max_stack_depth"` // most kernel frames in one stack
}

// CPU roles and kinds in LinuxCPU.
const (
	CPUKindSMP = 0 // all CPUs of the machine are alike
	CPUKindE   = 1 // an efficient core
	CPUKindP   = 2 // a fast core

	CPUStopped  = 1 << 0 // held still in the window
	CPUWorked   = 1 << 1 // took items from the queues
	CPUMissed   = 1 << 2 // did not arrive within the budget
	CPULeft     = 1 << 3 // left running on purpose (isolated, nohz_full)
	CPUMain     = 1 << 4 // took the census
	CPUIdle     = 1 << 5 // ran its idle task when the stop took it
	CPURanKnown = 1 << 6 // ran_tid and ran_tgid are known

	CPUThrottled = 1 << 7 // a cooling device throttles it: it takes no items, unless --cpus names it or it is needed; a warning says why
)

// LinuxCPU says what one CPU is and what it did. Times are CLOCK_MONOTONIC, ns; 0 if the
// CPU was not stopped.
type LinuxCPU struct {
	CPU        uint32 `kc:"cpu"`
	Kind       uint32 `kc:"kind"` // CPUKind*
	Cluster    uint32 `kc:"cluster"`
	Flags      uint32 `kc:"flags"` // CPU*
	ArriveNs   uint64 `kc:"arrive_ns"`
	ReleaseNs  uint64 `kc:"release_ns"`  // between arrival and release nothing ran here that the isolation keeps away
	RqClock    uint64 `kc:"rq_clock"`    // runqueue clock, ns, read at rq_clock_at; 0: not read, and another CPU's pair dates the stamps of its threads approximately
	RqClockAt  uint64 `kc:"rq_clock_at"` // CLOCK_MONOTONIC of that reading
	RanTid     uint32 `kc:"ran_tid"`     // thread displaced by the stop; 0 with CPUIdle: idle
	RanTgid    uint32 `kc:"ran_tgid"`
	NrRunning  uint32 `kc:"nr_running"` // runqueue length, our worker not counted
	Switches   uint32 `kc:"switches"`   // context switches of our worker inside the window; each one breaks the stop
	Tasks      uint32 `kc:"tasks"`
	Threads    uint32 `kc:"threads"`
	Bytes      uint64 `kc:"bytes"`
	SpillBytes uint64 `kc:"spill_bytes"` // of these bytes, those in other clusters' arenas
	QueueNs    uint64 `kc:"queue_ns"`    // waited on an empty queue
}

// LinuxModule is one loaded kernel module.
type LinuxModule struct {
	Addr       uint64   `kc:"addr"`
	Size       uint64   `kc:"size"`
	Name       uint32   `kc:"name"` // offset in LINUX_STRINGS
	BuildIDLen uint32   `kc:"build_id_len"`
	BuildID    [20]byte `kc:"build_id"`
	Reserved   uint32   `kc:"reserved"`
}

// LinuxCapture says how the capture went. All durations are in ns.
type LinuxCapture struct {
	StopNs     uint64 `kc:"stop_ns"`    // CLOCK_MONOTONIC when the last try took its first CPU
	StoppedNs  uint64 `kc:"stopped_ns"` // first CPU taken from its work to last CPU given back, summed over tries
	WindowNs   uint64 `kc:"window_ns"`  // all arrived to first release, last try; ends at the least release_ns of the CPUs
	ArrivalNs  uint64 `kc:"arrival_ns"` // first to last arrival, last try
	ReleaseNs  uint64 `kc:"release_ns"` // first to last release, last try
	ElapsedNs  uint64 `kc:"elapsed_ns"` // request to collation
	CensusNs   uint64 `kc:"census_ns"`  // duration of the census, last try
	MaxPauseNs uint64 `kc:"max_pause_ns"`
	Tries      uint32 `kc:"tries"`
	StopBroken uint32 `kc:"stop_broken"` // context switches of workers inside the window
	LeftOut    uint32 `kc:"left_out"`    // tasks in the LEFT_OUT array
	Vanished   uint32 `kc:"vanished"`    // tasks of the census that ended before they were recorded
	BufferSize uint64 `kc:"buffer_size"`
	BufferUsed uint64 `kc:"buffer_used"`
	Overhead   uint64 `kc:"buffer_overhead"` // bytes put on freelists and not used again
}

// How the figures of LinuxAtomicity were measured.
const (
	AtomicityInWindow = 1 // a second pass before the release
	AtomicityAfter    = 2 // a second reading of /proc, after everything was recorded
)

// LinuxAtomicity says how close the file is to a picture of one instant. When all threads
// are recorded, each thread's context switches and run time are read a second time and
// compared with its record. The snapshotter's own threads do not count.
type LinuxAtomicity struct {
	Compared uint32 `kc:"compared"` // threads that were read twice
	Ran      uint32 `kc:"ran"`      // of these, threads that ran between the two readings
	Gone     uint32 `kc:"gone"`     // threads that were recorded, and had ended by the second reading
	Missed   uint32 `kc:"missed"`   // threads that were recorded, and not read again: no time was left
	Method   uint32 `kc:"method"`   // Atomicity*
	Reserved uint32 `kc:"reserved"`
	SpanNs   uint64 `kc:"span_ns"`   // from the first record to the last second reading
	VerifyNs uint64 `kc:"verify_ns"` // of span_ns, the second pass
}

// LinuxRan is one thread that ran between its record and its second reading. The file
// lists the first MaxRan of them.
type LinuxRan struct {
	Tid       uint32 `kc:"tid"`
	Tgid      uint32 `kc:"tgid"`
	Switches  uint64 `kc:"switches"`   // context switches in between
	RuntimeNs uint64 `kc:"runtime_ns"` // run time in between
}

// MaxRan is how many LinuxRan a file has at most.
const MaxRan = 1000

// Presence bits of LinuxPhases.
const (
	PhasesHaveUnwind = 1 << 0 // unwind_ns: taken with --latency thread
	PhasesHaveCycles = 1 << 1 // cycles, instrs: the machine has a PMU and let us use it
)

// LinuxPhases says where one CPU's time went, from when it was taken until it was given
// back. The phases from enter_ns to exit_ns follow each other and add up to total_ns.
type LinuxPhases struct {
	CPU       uint32 `kc:"cpu"`
	Present   uint32 `kc:"present"` // PhasesHave*
	TotalNs   uint64 `kc:"total_ns"`
	EnterNs   uint64 `kc:"enter_ns"`   // worker running → counted in
	ArrivalNs uint64 `kc:"arrival_ns"` // waiting for the others to arrive
	HoldNs    uint64 `kc:"hold_ns"`    // waiting until all CPUs have their interrupts off; 0 unless the isolation is irqoff
	CensusNs  uint64 `kc:"census_ns"`  // filling the queues; main CPU only
	QueueNs   uint64 `kc:"queue_ns"`   // waiting on an empty queue
	RecordNs  uint64 `kc:"record_ns"`  // recording
	DrainNs   uint64 `kc:"drain_ns"`   // done, and waiting for the other CPUs' last tasks
	VerifyNs  uint64 `kc:"verify_ns"`  // second pass
	ReleaseNs uint64 `kc:"release_ns"` // done, and waiting for the release
	ExitNs    uint64 `kc:"exit_ns"`    // released → CPU given back
	UnwindNs  uint64 `kc:"unwind_ns"`  // of record_ns, the time in the kernel's unwinder
	Cycles    uint64 `kc:"cycles"`     // CPU cycles from taken to given back
	Instrs    uint64 `kc:"instrs"`     // instructions likewise
}

// LinuxArena is the memory of one cluster. Sizes in bytes.
type LinuxArena struct {
	Cluster   uint32 `kc:"cluster"`
	Entries   uint32 `kc:"entries"`    // tails on its freelist at the end
	Size      uint64 `kc:"size"`       // of its arena
	Used      uint64 `kc:"used"`       // taken from the arena, by any CPU
	SpillOut  uint64 `kc:"spill_out"`  // what its CPUs took from other clusters' arenas
	SpillIn   uint64 `kc:"spill_in"`   // what other clusters' CPUs took from its arena
	FreedSize uint64 `kc:"freed_size"` // tails that its CPUs gave back
	Reused    uint64 `kc:"reused"`     // taken again from its freelist
	Overhead  uint64 `kc:"overhead"`   // given back and not used again
	Allocs    uint64 `kc:"allocs"`
	Refused   uint64 `kc:"refused"`
}

// Outcomes in LinuxTry.
const (
	TryWhole      = 1 // everything was recorded; the file is of this try
	TryNoSpace    = 2 // the buffer was full
	TryQueueFull  = 3 // there were more tasks than the queues could hold
	TryNotStopped = 4 // the CPUs did not come together
)

// LinuxTry is one try of the capture. Durations in ns.
type LinuxTry struct {
	Outcome    uint32 `kc:"outcome"` // Try*
	Reserved   uint32 `kc:"reserved"`
	StoppedNs  uint64 `kc:"stopped_ns"`
	WindowNs   uint64 `kc:"window_ns"`
	RestNs     uint64 `kc:"rest_ns"` // how long the machine ran before the next try
	BufferSize uint64 `kc:"buffer_size"`
	BufferUsed uint64 `kc:"buffer_used"`
}

// Places in LinuxTrace, each with the meaning of its datum.
const (
	TraceTaken    = 1  // the worker runs
	TraceArrived  = 2  // counted in; the state word
	TraceDecided  = 3  // the decision is seen; the state word
	TraceHeld     = 4  // all have their interrupts off; the state word
	TraceCensus   = 5  // the census is done; tasks seen
	TraceItem     = 6  // an item is taken; its number
	TraceItemEnd  = 7  // the item is done; its number << 32 | the LeftOut reason, 0: recorded whole
	TraceChunk    = 8  // a chunk is taken; its length in bytes
	TraceNoSpace  = 9  // no memory for a record; its number of the item
	TraceDrained  = 10 // no more items; the state word
	TraceVerified = 11 // the second pass is done; threads compared
	TraceReleased = 12 // leaving; the state word
	TraceLeft     = 13 // the worker's last act
)

// LinuxTrace is one event in the snapshotter itself.
type LinuxTrace struct {
	AtNs  uint64 `kc:"at_ns"` // CLOCK_MONOTONIC
	Datum uint64 `kc:"datum"`
	CPU   uint32 `kc:"cpu"`
	Place uint32 `kc:"place"` // Trace*
}

// LinuxSample says that the thread was running on a CPU that was not stopped, and that an
// interrupt of that CPU recorded its stacks there.
type LinuxSample struct {
	AtNs    uint64 `kc:"at_ns"`    // CLOCK_MONOTONIC
	DelayNs uint64 `kc:"delay_ns"` // time since the window's end (or, if nothing was stopped, since the capture's begin)
	CPU     uint32 `kc:"cpu"`
	User    uint32 `kc:"user"` // 1: it was in user mode
	IP      uint64 `kc:"ip"`   // where it was; 0 when redacted
}

// Reasons in LinuxLeftOut.
const (
	LeftOutMaxPause = 1 // the pause budget was spent
	LeftOutNoSpace  = 2 // the largest buffer was full
	LeftOutError    = 3 // recording failed; errno says how
	LeftOutVanished = 4 // asked for by --pid, gone before it was recorded
	LeftOutPanic    = 5 // the kernel panicked before it was recorded
)

// LinuxLeftOut names one task that is missing in the file, wholly or in part. A task has one
// for each reason.
type LinuxLeftOut struct {
	Tgid    uint32 `kc:"tgid"`
	Reason  uint32 `kc:"reason"` // LeftOut*
	Errno   uint32 `kc:"errno"`
	Threads uint32 `kc:"threads"` // threads left out for this reason, as the census counted them
}

// LinuxSymbol names one kernel address that occurs in the file.
type LinuxSymbol struct {
	Addr   uint64 `kc:"addr"`
	Offset uint32 `kc:"offset"` // from the symbol's start
	Name   uint32 `kc:"name"`   // offset in LINUX_STRINGS; 0: no symbol
	Module uint32 `kc:"module"` // offset in LINUX_STRINGS; 0: vmlinux
	Size   uint32 `kc:"size"`   // distance to the next symbol; 0: unknown
}

// Presence bits of LinuxTask.Present: which groups of fields were read.
const (
	TaskHasIDs         = 1 << 0  // ppid, pgid, sid, uid..egid
	TaskHasTimes       = 1 << 1  // start_boottime
	TaskHasSignal      = 1 << 2  // dead_utime, dead_stime, exit_code, signal_flags, live
	TaskHasOOM         = 1 << 3  // oom_score_adj
	TaskHasCgroup      = 1 << 4  // cgroup_id
	TaskHasGroupIO     = 1 << 5  // dead_read_bytes, dead_write_bytes
	TaskHasFaults      = 1 << 6  // dead_min_flt, dead_maj_flt
	TaskHasThreadCount = 1 << 7  // nr_threads
	TaskIsKernel       = 1 << 8  // no user space: kernel thread
	TaskInExec         = 1 << 9  // inside execve
	TaskCoreDumping    = 1 << 10 // writing a core dump
	TaskIsSelf         = 1 << 11 // one of the snapshotter's own
	TaskHasMonotonic   = 1 << 12 // start_time
)

// LinuxTask is a thread group (a process, or a kernel thread's group).
// Source: task_struct, signal_struct, cred. The dead_* fields sum the threads
// that have already exited, as signal_struct keeps them.
type LinuxTask struct {
	Present       uint64 `kc:"present"` // TaskHas*, TaskIs*
	Tgid          uint32 `kc:"tgid"`
	Ppid          uint32 `kc:"ppid"` // real_parent's tgid
	Pgid          uint32 `kc:"pgid"`
	Sid           uint32 `kc:"sid"`
	UID           uint32 `kc:"uid"`
	GID           uint32 `kc:"gid"`
	EUID          uint32 `kc:"euid"`
	EGID          uint32 `kc:"egid"`
	NrThreads     uint32 `kc:"nr_threads"`
	Live          int32  `kc:"live"` // threads that have not begun to exit
	ExitCode      int32  `kc:"exit_code"`
	SignalFlags   uint32 `kc:"signal_flags"` // SIGNAL_* of sched/signal.h
	OOMScoreAdj   int32  `kc:"oom_score_adj"`
	Reserved      uint32 `kc:"reserved"`
	StartTime     uint64 `kc:"start_time"`     // CLOCK_MONOTONIC, ns
	StartBoottime uint64 `kc:"start_boottime"` // CLOCK_BOOTTIME, ns
	CgroupID      uint64 `kc:"cgroup_id"`      // inode of the default hierarchy's cgroup
	DeadUtime     uint64 `kc:"dead_utime"`     // ns
	DeadStime     uint64 `kc:"dead_stime"`     // ns
	DeadMinFlt    uint64 `kc:"dead_min_flt"`
	DeadMajFlt    uint64 `kc:"dead_maj_flt"`
	DeadReadB     uint64 `kc:"dead_read_bytes"`
	DeadWriteB    uint64 `kc:"dead_write_bytes"`
}

// LinuxTaskMemory is the memory of a task with user space. Sizes in bytes; the last three
// fields are addresses.
// The resident counters are the kernel's per-CPU counters, read without summing them up:
// each may be off by up to 64 pages per CPU.
type LinuxTaskMemory struct {
	RssFile    uint64 `kc:"rss_file"`
	RssAnon    uint64 `kc:"rss_anon"`
	RssShmem   uint64 `kc:"rss_shmem"`
	Swap       uint64 `kc:"swap"`
	HiwaterRss uint64 `kc:"hiwater_rss"`
	HiwaterVM  uint64 `kc:"hiwater_vm"`
	TotalVM    uint64 `kc:"total_vm"`
	LockedVM   uint64 `kc:"locked_vm"`
	PinnedVM   uint64 `kc:"pinned_vm"`
	DataVM     uint64 `kc:"data_vm"`
	ExecVM     uint64 `kc:"exec_vm"`
	StackVM    uint64 `kc:"stack_vm"`
	Pgtables   uint64 `kc:"pgtables"`
	MapCount   uint64 `kc:"map_count"`   // mappings; 0 where not known (procfs)
	StartStack uint64 `kc:"start_stack"` // where the program found its arguments; like the next two another after an exec, and 0 where not known
	EndCode    uint64 `kc:"end_code"`    // of the executable; 0 in the middle of an exec too
	EndData    uint64 `kc:"end_data"`    // of the executable
}

// LinuxTaskNS holds the inode numbers of the namespaces; 0: not read, or the kernel is
// built without them.
type LinuxTaskNS struct {
	Mnt    uint32 `kc:"mnt"`
	Pid    uint32 `kc:"pid"` // of the task itself, not of its future children
	Net    uint32 `kc:"net"`
	UTS    uint32 `kc:"uts"`
	IPC    uint32 `kc:"ipc"`
	Cgroup uint32 `kc:"cgroup"`
	Time   uint32 `kc:"time"`
	User   uint32 `kc:"user"`
}

// LinuxTaskExe is the executable as the kernel knows it, read in the window. Reading it
// needs no path walk and no lock, so it is in the file even when /proc hangs.
type LinuxTaskExe struct {
	Ino     uint64   `kc:"ino"`
	Dev     uint32   `kc:"dev"`       // kernel encoding: major<<20 | minor
	Refused uint32   `kc:"refused"`   // pointers that were not followed, because they do not point to ordinary memory; the fields behind them are 0
	Name    [64]byte `kc:"name,char"` // last path component, NUL-terminated, at most 63 bytes
}

// Presence bits of LinuxThread.Present.
const (
	ThreadHasTimes     = 1 << 0  // utime, stime: the kernel's raw figures, counted in ticks
	ThreadHasRuntime   = 1 << 1  // sum_exec_runtime, run_delay, pcount
	ThreadHasSchedInfo = 1 << 2  // last_arrival, last_queued, exec_start
	ThreadHasSwitches  = 1 << 3  // nvcsw, nivcsw
	ThreadHasFaults    = 1 << 4  // min_flt, maj_flt
	ThreadHasPrio      = 1 << 5  // static_prio, normal_prio
	ThreadHasStart     = 1 << 6  // start_boottime
	ThreadHasFsBase    = 1 << 7  // fs_base
	ThreadHasStack     = 1 << 8  // the unwinder ran; kstack_err and kstack_depth are valid
	ThreadHasExitCode  = 1 << 9  // exit_code
	ThreadHasOnCPU     = 1 << 10 // on_cpu
	ThreadTruncated    = 1 << 11 // the kernel stack is deeper than the request allows
	ThreadNeverRan     = 1 << 12 // forked, last_arrival 0
	ThreadUserMode     = 1 << 13 // was in user mode, not in a system call
	ThreadIsIdle       = 1 << 14 // a CPU's idle thread
	ThreadIsSelf       = 1 << 15 // one of the snapshotter's own
	ThreadHasMonotonic = 1 << 16 // start_time
	ThreadDisplaced    = 1 << 17 // one of the snapshotter's own threads took its CPU before the stop; displaced_ns says how long before
	ThreadCompatCall   = 1 << 18 // its system call has a number of the 32-bit ABI: i386's on amd64, arm's on arm64
	ThreadCallUnsure   = 1 << 19 // engine procfs: the number may be of that ABI or of the machine's own
)

// LinuxThread is one thread. Source: task_struct, sched_entity, sched_info.
type LinuxThread struct {
	Present        uint64 `kc:"present"` // Thread*
	Tid            uint32 `kc:"tid"`
	Tgid           uint32 `kc:"tgid"`
	State          uint32 `kc:"state"` // __state, TASK_* of sched.h
	ExitState      uint32 `kc:"exit_state"`
	Flags          uint32 `kc:"flags"` // PF_*
	CPU            uint32 `kc:"cpu"`
	OnCPU          uint32 `kc:"on_cpu"` // 1: was on its CPU when the stop took that CPU (without a stop: when the thread was read)
	Policy         uint32 `kc:"policy"`
	Prio           int32  `kc:"prio"` // kernel scale, 0-139, -1 deadline
	StaticPrio     int32  `kc:"static_prio"`
	NormalPrio     int32  `kc:"normal_prio"`
	RtPriority     uint32 `kc:"rt_priority"`
	Nice           int32  `kc:"nice"`
	KstackErr      int32  `kc:"kstack_err"`   // errno of the unwinder, 0: none; EBUSY: the thread was running, on a CPU that was not stopped or on our own
	KstackDepth    uint32 `kc:"kstack_depth"` // frames in the stack item
	ExitCode       int32  `kc:"exit_code"`
	StartTime      uint64 `kc:"start_time"`       // CLOCK_MONOTONIC, ns
	StartBoottime  uint64 `kc:"start_boottime"`   // CLOCK_BOOTTIME, ns
	Utime          uint64 `kc:"utime"`            // ns
	Stime          uint64 `kc:"stime"`            // ns
	SumExecRuntime uint64 `kc:"sum_exec_runtime"` // ns
	RunDelay       uint64 `kc:"run_delay"`        // ns waited on a runqueue
	Pcount         uint64 `kc:"pcount"`           // times run on a CPU
	LastArrival    uint64 `kc:"last_arrival"`     // runqueue clock, ns
	LastQueued     uint64 `kc:"last_queued"`      // runqueue clock, ns; 0: not queued
	ExecStart      uint64 `kc:"exec_start"`       // runqueue task clock, ns
	Nvcsw          uint64 `kc:"nvcsw"`
	Nivcsw         uint64 `kc:"nivcsw"`
	MinFlt         uint64 `kc:"min_flt"`
	MajFlt         uint64 `kc:"maj_flt"`
	FsBase         uint64 `kc:"fs_base"`        // tpidr_el0 on arm64
	DisplacedNs    uint64 `kc:"displaced_ns"`   // with ThreadDisplaced: how long before the stop it lost its CPU, ns
	KstackSkipped  uint32 `kc:"kstack_skipped"` // leaf frames of the preemption path, which the stack item leaves out
	Reserved       uint32 `kc:"reserved"`
}

// LinuxSyscall is the thread's last entry into the kernel, from its saved user registers.
// Nr -1: no system call, but an interrupt or a fault.
type LinuxSyscall struct {
	Nr   int64     `kc:"nr"`
	IP   uint64    `kc:"ip"`
	SP   uint64    `kc:"sp"`
	Args [6]uint64 `kc:"args"`
}

// LinuxThreadIO mirrors struct task_io_accounting, bytes and calls.
type LinuxThreadIO struct {
	Rchar          uint64 `kc:"rchar"`
	Wchar          uint64 `kc:"wchar"`
	Syscr          uint64 `kc:"syscr"`
	Syscw          uint64 `kc:"syscw"`
	ReadBytes      uint64 `kc:"read_bytes"`
	WriteBytes     uint64 `kc:"write_bytes"`
	CancelledWrite uint64 `kc:"cancelled_write_bytes"`
}

// LinuxDelays mirrors struct task_delay_info: ns waited, and how often.
type LinuxDelays struct {
	BlkioNs     uint64 `kc:"blkio_ns"`
	SwapinNs    uint64 `kc:"swapin_ns"`
	FreepagesNs uint64 `kc:"freepages_ns"`
	ThrashingNs uint64 `kc:"thrashing_ns"`
	CompactNs   uint64 `kc:"compact_ns"`
	WpcopyNs    uint64 `kc:"wpcopy_ns"`
	Blkio       uint32 `kc:"blkio"`
	Swapin      uint32 `kc:"swapin"`
	Freepages   uint32 `kc:"freepages"`
	Thrashing   uint32 `kc:"thrashing"`
	Compact     uint32 `kc:"compact"`
	Wpcopy      uint32 `kc:"wpcopy"`
}

// LinuxSignals holds signal sets, bit n-1 for signal n.
type LinuxSignals struct {
	Pending       uint64 `kc:"pending"`        // for this thread
	SharedPending uint64 `kc:"shared_pending"` // for the task
	Blocked       uint64 `kc:"blocked"`
}

// LinuxThreadNS is a thread's number in one deeper pid namespace.
type LinuxThreadNS struct {
	Inode uint32 `kc:"inode"`
	Tid   uint32 `kc:"tid"`
}

// LinuxRegister is one saved user register. The array is in the order of the
// kernel's struct pt_regs (arch/*/include/asm/ptrace.h). amd64, 21 values: r15
// r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi orig_rax rip cs rflags
// rsp ss. arm64, 34 values: x0 to x30, sp, pc, pstate.
type LinuxRegister struct {
	Value uint64 `kc:"value"`
}
