package kcdata

// TaskSnapshot describes a task (version 2, 120 bytes).
type TaskSnapshot struct {
	UniquePid          uint64   `kc:"ts_unique_pid"`
	SSFlags            uint64   `kc:"ts_ss_flags"`
	UserTimeTerminated uint64   `kc:"ts_user_time_in_terminated_threads"`   // ticks
	SysTimeTerminated  uint64   `kc:"ts_system_time_in_terminated_threads"` // ticks
	StartSec           uint64   `kc:"ts_p_start_sec"`                       // seconds since the epoch
	TaskSize           uint64   `kc:"ts_task_size"`                         // bytes resident
	MaxResidentSize    uint64   `kc:"ts_max_resident_size"`                 // bytes
	SuspendCount       uint32   `kc:"ts_suspend_count"`
	Faults             uint32   `kc:"ts_faults"`
	Pageins            uint32   `kc:"ts_pageins"`
	COWFaults          uint32   `kc:"ts_cow_faults"`
	WasThrottled       uint32   `kc:"ts_was_throttled"`
	DidThrottle        uint32   `kc:"ts_did_throttle"`
	LatencyQoS         uint32   `kc:"ts_latency_qos"`
	Pid                int32    `kc:"ts_pid"`
	Comm               [32]byte `kc:"ts_p_comm,char"` // NUL-terminated
}

// TransitioningTaskSnapshot describes a task past its exit point (60 bytes).
type TransitioningTaskSnapshot struct {
	UniquePid      uint64   `kc:"tts_unique_pid"`
	SSFlags        uint64   `kc:"tts_ss_flags"`
	TransitionType uint64   `kc:"tts_transition_type"` // 1: terminated
	Pid            int32    `kc:"tts_pid"`
	Comm           [32]byte `kc:"tts_p_comm,char"`
}

// IOStats counts a task's or thread's disk I/O (160 bytes); sizes in bytes.
type IOStats struct {
	DiskReadsCount  uint64    `kc:"ss_disk_reads_count"`
	DiskReadsSize   uint64    `kc:"ss_disk_reads_size"`
	DiskWritesCount uint64    `kc:"ss_disk_writes_count"`
	DiskWritesSize  uint64    `kc:"ss_disk_writes_size"`
	PriorityCount   [4]uint64 `kc:"ss_io_priority_count"`
	PrioritySize    [4]uint64 `kc:"ss_io_priority_size"`
	PagingCount     uint64    `kc:"ss_paging_count"`
	PagingSize      uint64    `kc:"ss_paging_size"`
	NonPagingCount  uint64    `kc:"ss_non_paging_count"`
	NonPagingSize   uint64    `kc:"ss_non_paging_size"`
	DataCount       uint64    `kc:"ss_data_count"`
	DataSize        uint64    `kc:"ss_data_size"`
	MetadataCount   uint64    `kc:"ss_metadata_count"`
	MetadataSize    uint64    `kc:"ss_metadata_size"`
}

type taskDeltaSnapshot struct {
	UniquePid          uint64 `kc:"tds_unique_pid"`
	SSFlags            uint64 `kc:"tds_ss_flags"`
	UserTimeTerminated uint64 `kc:"tds_user_time_in_terminated_threads"`
	SysTimeTerminated  uint64 `kc:"tds_system_time_in_terminated_threads"`
	TaskSize           uint64 `kc:"tds_task_size"`
	MaxResidentSize    uint64 `kc:"tds_max_resident_size"`
	SuspendCount       uint32 `kc:"tds_suspend_count"`
	Faults             uint32 `kc:"tds_faults"`
	Pageins            uint32 `kc:"tds_pageins"`
	COWFaults          uint32 `kc:"tds_cow_faults"`
	WasThrottled       uint32 `kc:"tds_was_throttled"`
	DidThrottle        uint32 `kc:"tds_did_throttle"`
	LatencyQoS         uint32 `kc:"tds_latency_qos"`
}

type cpuArchitecture struct {
	CPUType    int32 `kc:"cputype"`
	CPUSubtype int32 `kc:"cpusubtype"`
}

type codesigningInfo struct {
	CSFlags    uint64 `kc:"csflags"`
	TrustLevel uint32 `kc:"cs_trust_level"`
}

type suspensionInfo struct {
	LastStart uint64 `kc:"tss_last_start"`
	LastEnd   uint64 `kc:"tss_last_end"`
	Count     uint64 `kc:"tss_count"`
	Duration  uint64 `kc:"tss_duration"`
}

type suspensionSource struct {
	Time     uint64   `kc:"tss_time"`
	Tid      uint64   `kc:"tss_tid"`
	Pid      int32    `kc:"tss_pid"`
	Procname [65]byte `kc:"tss_procname,char"`
}

type portLabel struct {
	ID     int16  `kc:"portlabel_id"`
	Flags  uint16 `kc:"portlabel_flags"`
	Domain uint8  `kc:"portlabel_domain"`
}

type taskExecMeta struct {
	Flags uint64 `kc:"tem_flags"`
}

func taskSpecs() []Spec {
	return []Spec{
		plainSpec(TypeTask, "TASK", "task_snapshots", KindContainer),
		plainSpec(TypeTransitioningTask, "TRANSITIONING_TASK", "transitioning_task_snapshots", KindContainer),
		plainSpec(TypePortLabelContainer, "PORTLABEL_CONTAINER", "portlabels", KindContainer),
		structSpec(TypeIOStats, "IOSTATS", "io_statistics", IOStats{}),
		structSpec(TypeTaskSnapshot, "TASK_SNAPSHOT", "task_snapshot", TaskSnapshot{}),
		structSpec(TypeTransitioningSnapshot, "TRANSITIONING_TASK_SNAPSHOT", "transitioning_task_snapshot", TransitioningTaskSnapshot{}),
		structSpec(TypeTaskDeltaSnapshot, "TASK_DELTA_SNAPSHOT", "task_delta_snapshot", taskDeltaSnapshot{}),
		plainSpec(TypeDonatingPids, "DONATING_PIDS", "donating_pids", KindInt32),
		plainSpec(TypeNonrunnableTids, "NONRUNNABLE_TIDS", "nonrunnable_threads", KindInt64),
		plainSpec(TypeJetsamCoalition, "JETSAM_COALITION", "jetsam_coalition", KindUint64),
		plainSpec(TypeASID, "ASID", "ts_asid", KindUint32),
		plainSpec(TypePageTables, "PAGE_TABLES", "ts_pagetable", KindUint64),
		structSpec(TypeTaskCPUArchitecture, "TASK_CPU_ARCHITECTURE", "task_cpu_architecture", cpuArchitecture{}),
		merged(structSpec(TypePortLabel, "PORTLABEL", "portlabel_info", portLabel{})),
		plainSpec(TypePortLabelName, "PORTLABEL_NAME", "portlabel_name", KindString),
		structSpec(TypeSuspensionInfo, "SUSPENSION_INFO", "suspension_info", suspensionInfo{}),
		structSpec(TypeSuspensionSource, "SUSPENSION_SOURCE", "suspension_source", suspensionSource{}),
		structSpec(TypeCodesigningInfo, "CODESIGNING_INFO", "stackshot_task_codesigning_info", codesigningInfo{}),
		structSpec(TypeTaskExecMeta, "TASK_EXEC_META", "task_exec_meta", taskExecMeta{}),
	}
}
