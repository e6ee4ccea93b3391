package kcdata

// Duration says how long a stackshot took (version 2, 24 bytes), in ticks.
type Duration struct {
	Duration uint64 `kc:"stackshot_duration"`       // of the stop
	Outer    uint64 `kc:"stackshot_duration_outer"` // of the request
	Prior    uint64 `kc:"stackshot_duration_prior"` // of earlier tries; since version 2
}

// memAndIO begins with the magic 0xbfcabcde.
const memAndIO = `
	uint32_t snapshot_magic, free_pages, active_pages, inactive_pages, purgeable_pages, wired_pages,
		speculative_pages, throttled_pages, filebacked_pages, compressions, decompressions,
		compressor_size;
	int32_t busy_buffer_count;
	uint32_t pages_wanted, pages_reclaimed;
	uint8_t pages_wanted_reclaimed_valid;`

const faultStats = `
	uint32_t sfs_pages_faulted_in;
	uint64_t sfs_time_spent_faulting, sfs_system_max_fault_time;
	uint8_t sfs_stopped_faulting;`

const threadGroupSnapshot = `
	uint64_t tgs_id;
	char tgs_name[16];
	uint64_t tgs_flags;
	char tgs_name_cont[16];`

const jetsamCoalitionSnapshot = `uint64_t jcs_id, jcs_flags, jcs_thread_group, jcs_leader_task_uniqueid`

func machineSpecs() []Spec {
	return []Spec{
		declared(0x902, "GLOBAL_MEM_STATS", "mem_and_io_snapshot", memAndIO),
		plainSpec(TypeBootArgs, "BOOTARGS", "boot_args", KindString),
		plainSpec(TypeOSVersion, "OSVERSION", "osversion", KindString),
		plainSpec(0x947, "OS_BUILD_VERSION", "os_build_version", KindString),
		plainSpec(TypeKernPageSize, "KERN_PAGE_SIZE", "kernel_page_size", KindUint32),
		plainSpec(0x911, "JETSAM_LEVEL", "jetsam_level", KindUint32),
		plainSpec(0x912, "DELTA_SINCE_TIMESTAMP", "stackshot_delta_since_timestamp", KindUint64),
		plainSpec(0x918, "NONRUNNABLE_TASKS", "nonrunnable_tasks", KindInt64),
		plainSpec(0x922, "THREAD_POLICY_VERSION", "thread_policy_version", KindUint32),
		merged(structSpec(TypeDuration, "STACKSHOT_DURATION", "stackshot_duration", Duration{}, 16)),
		declared(0x91b, "STACKSHOT_FAULT_STATS", "stackshot_fault_stats", faultStats),
		declared(0x91e, "THREAD_GROUP_SNAPSHOT", "thread_group_snapshot", threadGroupSnapshot, 24, 32),
		declared(0x920, "JETSAM_COALITION_SNAPSHOT", "jetsam_coalition_snapshot", jetsamCoalitionSnapshot),
	}
}
