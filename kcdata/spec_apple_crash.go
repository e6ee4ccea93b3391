package kcdata

const bsdInfo = `
	uint8_t p_uuid[16];
	uint64_t p_uniqueid, p_puniqueid;`

const rusageInfo = `
	uint8_t ri_uuid[16];
	uint64_t ri_user_time, ri_system_time, ri_pkg_idle_wkups, ri_interrupt_wkups, ri_pageins,
		ri_wired_size, ri_resident_size, ri_phys_footprint, ri_proc_start_abstime, ri_proc_exit_abstime,
		ri_child_user_time, ri_child_system_time, ri_child_pkg_idle_wkups, ri_child_interrupt_wkups,
		ri_child_pageins, ri_child_elapsed_abstime, ri_diskio_bytesread, ri_diskio_byteswritten,
		ri_cpu_time_qos_default, ri_cpu_time_qos_maintenance, ri_cpu_time_qos_background,
		ri_cpu_time_qos_utility, ri_cpu_time_qos_legacy, ri_cpu_time_qos_user_initiated,
		ri_cpu_time_qos_user_interactive, ri_billed_system_time, ri_serviced_system_time;`

func crashSpecs() []Spec {
	const prefix = "TASK_CRASHINFO_"
	return []Spec{
		plainSpec(TypeCrashExtModInfo, "EXTMODINFO", prefix+"EXTMODINFO", KindBytes),
		declared(TypeCrashBSDInfo, "BSDINFOWITHUNIQID", "proc_uniqidentifierinfo", bsdInfo),
		plainSpec(TypeCrashTaskDyldInfo, "TASKDYLD_INFO", prefix+"TASKDYLD_INFO", KindBytes),
		plainSpec(TypeCrashUUID, "UUID", prefix+"UUID", KindBytes),
		plainSpec(TypeCrashPid, "CRASHINFO_PID", "pid", KindInt32),
		plainSpec(TypeCrashPPid, "PPID", "ppid", KindInt32),
		plainSpec(TypeCrashRusage, "RUSAGE", "Type_0x807", KindBytes),
		declared(TypeCrashRusageInfo, "RUSAGE_INFO", "rusage_info", rusageInfo),
		plainSpec(TypeCrashProcName, "PROC_NAME", "p_comm", KindString),
		declared(TypeCrashProcStarttime, "PROC_STARTTIME", "proc_starttime", `uint64_t tv_sec, tv_usec`),
		plainSpec(TypeCrashUserstack, "USERSTACK", "userstack_ptr", KindUint64),
		plainSpec(TypeCrashArgslen, "ARGSLEN", "p_argslen", KindInt32),
		declared(TypeCrashExceptionCodes, "EXCEPTION_CODES", "mach_exception_data_t", `uint64_t code_0, code_1`),
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
		declared(TypeCrashJITAddressRange, "JIT_ADDRESS_RANGE", "jit_address_range", `uint64_t start_address, end_address`),
		plainSpec(TypeCrashCSAuxiliaryInfo, "CS_AUXILIARY_INFO", "cs_auxiliary_info", KindUint64),
	}
}
