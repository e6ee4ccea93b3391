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

const ioStats = `
	uint64_t ss_disk_reads_count, ss_disk_reads_size, ss_disk_writes_count, ss_disk_writes_size,
		ss_io_priority_count[4], ss_io_priority_size[4], ss_paging_count, ss_paging_size,
		ss_non_paging_count, ss_non_paging_size, ss_data_count, ss_data_size,
		ss_metadata_count, ss_metadata_size;`

const taskDeltaSnapshot = `
	uint64_t tds_unique_pid, tds_ss_flags, tds_user_time_in_terminated_threads,
		tds_system_time_in_terminated_threads, tds_task_size, tds_max_resident_size;
	uint32_t tds_suspend_count, tds_faults, tds_pageins, tds_cow_faults, tds_was_throttled,
		tds_did_throttle, tds_latency_qos;`

const codesigningInfo = `
	uint64_t csflags;
	uint32_t cs_trust_level;`

const suspensionInfo = `uint64_t tss_last_start, tss_last_end, tss_count, tss_duration`

const suspensionSource = `
	uint64_t tss_time, tss_tid;
	int32_t tss_pid;
	char tss_procname[65];`

const portLabel = `
	int16_t portlabel_id;
	uint16_t portlabel_flags;
	uint8_t portlabel_domain;`

func taskSpecs() []Spec {
	return []Spec{
		plainSpec(TypeTask, "TASK", "task_snapshots", KindContainer),
		plainSpec(TypeTransitioningTask, "TRANSITIONING_TASK", "transitioning_task_snapshots", KindContainer),
		plainSpec(0x934, "PORTLABEL_CONTAINER", "portlabels", KindContainer), // id: label index + 1
		declared(0x901, "IOSTATS", "io_statistics", ioStats),
		structSpec(TypeTaskSnapshot, "TASK_SNAPSHOT", "task_snapshot", TaskSnapshot{}),
		structSpec(TypeTransitioningSnapshot, "TRANSITIONING_TASK_SNAPSHOT", "transitioning_task_snapshot", TransitioningTaskSnapshot{}),
		declared(0x940, "TASK_DELTA_SNAPSHOT", "task_delta_snapshot", taskDeltaSnapshot),
		plainSpec(TypeDonatingPids, "DONATING_PIDS", "donating_pids", KindInt32),
		plainSpec(TypeNonrunnableTids, "NONRUNNABLE_TIDS", "nonrunnable_threads", KindInt64),
		plainSpec(0x921, "JETSAM_COALITION", "jetsam_coalition", KindUint64),
		plainSpec(TypeASID, "ASID", "ts_asid", KindUint32),
		plainSpec(TypePageTables, "PAGE_TABLES", "ts_pagetable", KindUint64),
		declared(0x92a, "TASK_CPU_ARCHITECTURE", "task_cpu_architecture", `int32_t cputype, cpusubtype`),
		merged(declared(0x935, "PORTLABEL", "portlabel_info", portLabel)),
		plainSpec(0x936, "PORTLABEL_NAME", "portlabel_name", KindString),
		declared(0x938, "SUSPENSION_INFO", "suspension_info", suspensionInfo),
		declared(0x939, "SUSPENSION_SOURCE", "suspension_source", suspensionSource),
		declared(0x946, "CODESIGNING_INFO", "stackshot_task_codesigning_info", codesigningInfo),
		declared(0x957, "TASK_EXEC_META", "task_exec_meta", `uint64_t tem_flags`),
	}
}
