package kcdata

type bsdInfo struct {
	UUID      [16]byte `kc:"p_uuid"`
	UniqueID  uint64   `kc:"p_uniqueid"`
	PUniqueID uint64   `kc:"p_puniqueid"`
}

type exceptionCodes struct {
	Code0 uint64 `kc:"code_0"`
	Code1 uint64 `kc:"code_1"`
}

type startTime struct {
	Sec  uint64 `kc:"tv_sec"`
	Usec uint64 `kc:"tv_usec"`
}

type jitRange struct {
	Start uint64 `kc:"start_address"`
	End   uint64 `kc:"end_address"`
}

type rusageInfo struct {
	UUID                [16]byte `kc:"ri_uuid"`
	UserTime            uint64   `kc:"ri_user_time"`
	SystemTime          uint64   `kc:"ri_system_time"`
	PkgIdleWkups        uint64   `kc:"ri_pkg_idle_wkups"`
	InterruptWkups      uint64   `kc:"ri_interrupt_wkups"`
	Pageins             uint64   `kc:"ri_pageins"`
	WiredSize           uint64   `kc:"ri_wired_size"`
	ResidentSize        uint64   `kc:"ri_resident_size"`
	PhysFootprint       uint64   `kc:"ri_phys_footprint"`
	ProcStartAbstime    uint64   `kc:"ri_proc_start_abstime"`
	ProcExitAbstime     uint64   `kc:"ri_proc_exit_abstime"`
	ChildUserTime       uint64   `kc:"ri_child_user_time"`
	ChildSystemTime     uint64   `kc:"ri_child_system_time"`
	ChildPkgIdleWkups   uint64   `kc:"ri_child_pkg_idle_wkups"`
	ChildInterruptWkups uint64   `kc:"ri_child_interrupt_wkups"`
	ChildPageins        uint64   `kc:"ri_child_pageins"`
	ChildElapsedAbstime uint64   `kc:"ri_child_elapsed_abstime"`
	DiskIOBytesRead     uint64   `kc:"ri_diskio_bytesread"`
	DiskIOBytesWritten  uint64   `kc:"ri_diskio_byteswritten"`
	CPUTimeDefault      uint64   `kc:"ri_cpu_time_qos_default"`
	CPUTimeMaintenance  uint64   `kc:"ri_cpu_time_qos_maintenance"`
	CPUTimeBackground   uint64   `kc:"ri_cpu_time_qos_background"`
	CPUTimeUtility      uint64   `kc:"ri_cpu_time_qos_utility"`
	CPUTimeLegacy       uint64   `kc:"ri_cpu_time_qos_legacy"`
	CPUTimeInitiated    uint64   `kc:"ri_cpu_time_qos_user_initiated"`
	CPUTimeInteractive  uint64   `kc:"ri_cpu_time_qos_user_interactive"`
	BilledSystemTime    uint64   `kc:"ri_billed_system_time"`
	ServicedSystemTime  uint64   `kc:"ri_serviced_system_time"`
}

func crashSpecs() []Spec {
	const prefix = "TASK_CRASHINFO_"
	return []Spec{
		plainSpec(TypeCrashExtModInfo, "EXTMODINFO", prefix+"EXTMODINFO", KindBytes),
		structSpec(TypeCrashBSDInfo, "BSDINFOWITHUNIQID", "proc_uniqidentifierinfo", bsdInfo{}),
		plainSpec(TypeCrashTaskDyldInfo, "TASKDYLD_INFO", prefix+"TASKDYLD_INFO", KindBytes),
		plainSpec(TypeCrashUUID, "UUID", prefix+"UUID", KindBytes),
		plainSpec(TypeCrashPid, "CRASHINFO_PID", "pid", KindInt32),
		plainSpec(TypeCrashPPid, "PPID", "ppid", KindInt32),
		plainSpec(TypeCrashRusage, "RUSAGE", "Type_0x807", KindBytes),
		structSpec(TypeCrashRusageInfo, "RUSAGE_INFO", "rusage_info", rusageInfo{}),
		plainSpec(TypeCrashProcName, "PROC_NAME", "p_comm", KindString),
		structSpec(TypeCrashProcStarttime, "PROC_STARTTIME", "proc_starttime", startTime{}),
		plainSpec(TypeCrashUserstack, "USERSTACK", "userstack_ptr", KindUint64),
		plainSpec(TypeCrashArgslen, "ARGSLEN", "p_argslen", KindInt32),
		structSpec(TypeCrashExceptionCodes, "EXCEPTION_CODES", "mach_exception_data_t", exceptionCodes{}),
		plainSpec(TypeCrashProcPath, "PROC_PATH", "p_path", KindString),
		plainSpec(TypeCrashProcCSFlags, "PROC_CSFLAGS", "p_csflags", KindInt32),
		plainSpec(TypeCrashProcStatus, "PROC_STATUS", "p_status", KindUint8),
		plainSpec(TypeCrashUID, "UID", "uid", KindInt32),
		plainSpec(TypeCrashGID, "GID", "gid", KindInt32),
		plainSpec(TypeCrashProcArgc, "PROC_ARGC", "argc", KindInt32),
		plainSpec(TypeCrashProcFlags, "PROC_FLAGS", "p_flags", KindInt32),
		plainSpec(TypeCrashCPUType, "CPUTYPE", "cputype", KindInt32),
		plainSpec(TypeCrashWorkqueueInfo, "WORKQUEUEINFO", prefix+"WORKQUEUEINFO", KindBytes),
		plainSpec(TypeCrashResponsiblePid, "RESPONSIBLE_PID", "responsible_pid", KindInt32),
		plainSpec(TypeCrashDirtyFlags, "DIRTY_FLAGS", "dirty_flags", KindInt32),
		plainSpec(TypeCrashCrashedThreadID, "CRASHED_THREADID", "crashed_threadid", KindUint64),
		plainSpec(TypeCrashCoalitionID, "COALITION_ID", "coalition_id", KindUint64),
		structSpec(TypeCrashJITAddressRange, "JIT_ADDRESS_RANGE", "jit_address_range", jitRange{}),
		plainSpec(TypeCrashCSAuxiliaryInfo, "CS_AUXILIARY_INFO", "cs_auxiliary_info", KindUint64),
	}
}
