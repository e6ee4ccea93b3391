package kcdata

// Duration says how long a stackshot took (version 2, 24 bytes), in ticks.
type Duration struct {
	Duration uint64 `kc:"stackshot_duration"`       // of the stop
	Outer    uint64 `kc:"stackshot_duration_outer"` // of the request
	Prior    uint64 `kc:"stackshot_duration_prior"` // of earlier tries; since version 2
}

type memAndIO struct {
	Magic              uint32 `kc:"snapshot_magic"` // 0xbfcabcde
	FreePages          uint32 `kc:"free_pages"`
	ActivePages        uint32 `kc:"active_pages"`
	InactivePages      uint32 `kc:"inactive_pages"`
	PurgeablePages     uint32 `kc:"purgeable_pages"`
	WiredPages         uint32 `kc:"wired_pages"`
	SpeculativePages   uint32 `kc:"speculative_pages"`
	ThrottledPages     uint32 `kc:"throttled_pages"`
	FilebackedPages    uint32 `kc:"filebacked_pages"`
	Compressions       uint32 `kc:"compressions"`
	Decompressions     uint32 `kc:"decompressions"`
	CompressorSize     uint32 `kc:"compressor_size"`
	BusyBufferCount    int32  `kc:"busy_buffer_count"`
	PagesWanted        uint32 `kc:"pages_wanted"`
	PagesReclaimed     uint32 `kc:"pages_reclaimed"`
	PagesWantedIsValid uint8  `kc:"pages_wanted_reclaimed_valid"`
}

type faultStats struct {
	PagesFaultedIn  uint32 `kc:"sfs_pages_faulted_in"`
	TimeFaulting    uint64 `kc:"sfs_time_spent_faulting"`
	MaxFaultTime    uint64 `kc:"sfs_system_max_fault_time"`
	StoppedFaulting uint8  `kc:"sfs_stopped_faulting"`
}

type threadGroupSnapshot struct {
	ID       uint64   `kc:"tgs_id"`
	Name     [16]byte `kc:"tgs_name,char"`
	Flags    uint64   `kc:"tgs_flags"`
	NameCont [16]byte `kc:"tgs_name_cont,char"`
}

type jetsamCoalitionSnapshot struct {
	ID             uint64 `kc:"jcs_id"`
	Flags          uint64 `kc:"jcs_flags"`
	ThreadGroup    uint64 `kc:"jcs_thread_group"`
	LeaderUniqueID uint64 `kc:"jcs_leader_task_uniqueid"`
}

func machineSpecs() []Spec {
	return []Spec{
		structSpec(TypeGlobalMemStats, "GLOBAL_MEM_STATS", "mem_and_io_snapshot", memAndIO{}),
		plainSpec(TypeBootArgs, "BOOTARGS", "boot_args", KindString),
		plainSpec(TypeOSVersion, "OSVERSION", "osversion", KindString),
		plainSpec(TypeOSBuildVersion, "OS_BUILD_VERSION", "os_build_version", KindString),
		plainSpec(TypeKernPageSize, "KERN_PAGE_SIZE", "kernel_page_size", KindUint32),
		plainSpec(TypeJetsamLevel, "JETSAM_LEVEL", "jetsam_level", KindUint32),
		plainSpec(TypeDeltaSinceTimestamp, "DELTA_SINCE_TIMESTAMP", "stackshot_delta_since_timestamp", KindUint64),
		plainSpec(TypeNonrunnableTasks, "NONRUNNABLE_TASKS", "nonrunnable_tasks", KindInt64),
		plainSpec(TypeThreadPolicyVersion, "THREAD_POLICY_VERSION", "thread_policy_version", KindUint32),
		merged(structSpec(TypeDuration, "STACKSHOT_DURATION", "stackshot_duration", Duration{}, 16)),
		structSpec(TypeFaultStats, "STACKSHOT_FAULT_STATS", "stackshot_fault_stats", faultStats{}),
		structSpec(TypeThreadGroupSnapshot, "THREAD_GROUP_SNAPSHOT", "thread_group_snapshot", threadGroupSnapshot{}, 24, 32),
		structSpec(TypeJetsamCoalitionSnapshot, "JETSAM_COALITION_SNAPSHOT", "jetsam_coalition_snapshot", jetsamCoalitionSnapshot{}),
	}
}
