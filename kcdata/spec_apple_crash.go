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
		plainSpec(0x801, "EXTMODINFO", prefix+"EXTMODINFO", KindBytes),
		declared(0x802, "BSDINFOWITHUNIQID", "proc_uniqidentifierinfo", bsdInfo),
		plainSpec(0x803, "TASKDYLD_INFO", prefix+"TASKDYLD_INFO", KindBytes),
		plainSpec(0x804, "UUID", prefix+"UUID", KindBytes),
		plainSpec(0x805, "CRASHINFO_PID", "pid", KindInt32),
		plainSpec(0x806, "PPID", "ppid", KindInt32),
		plainSpec(0x807, "RUSAGE", "Type_0x807", KindBytes),
		declared(0x808, "RUSAGE_INFO", "rusage_info", rusageInfo),
		plainSpec(0x809, "PROC_NAME", "p_comm", KindString),
		declared(0x80b, "PROC_STARTTIME", "proc_starttime", `uint64_t tv_sec, tv_usec`),
		plainSpec(0x80c, "USERSTACK", "userstack_ptr", KindUint64),
		plainSpec(0x80d, "ARGSLEN", "p_argslen", KindInt32),
		declared(0x80e, "EXCEPTION_CODES", "mach_exception_data_t", `uint64_t code_0, code_1`),
		plainSpec(TypeCrashProcPath, "PROC_PATH", "p_path", KindString),
		plainSpec(0x810, "PROC_CSFLAGS", "p_csflags", KindInt32),
		plainSpec(0x811, "PROC_STATUS", "p_status", KindUint8),
		plainSpec(0x812, "UID", "uid", KindInt32),
		plainSpec(0x813, "GID", "gid", KindInt32),
		plainSpec(0x814, "PROC_ARGC", "argc", KindInt32),
		plainSpec(0x815, "PROC_FLAGS", "p_flags", KindInt32),
		plainSpec(0x816, "CPUTYPE", "cputype", KindInt32),
		plainSpec(0x817, "WORKQUEUEINFO", prefix+"WORKQUEUEINFO", KindBytes),
		plainSpec(0x818, "RESPONSIBLE_PID", "responsible_pid", KindInt32),
		plainSpec(0x819, "DIRTY_FLAGS", "dirty_flags", KindInt32),
		plainSpec(TypeCrashCrashedThreadID, "CRASHED_THREADID", "crashed_threadid", KindUint64),
		plainSpec(0x81b, "COALITION_ID", "coalition_id", KindUint64),
		declared(0x840, "JIT_ADDRESS_RANGE", "jit_address_range", `uint64_t start_address, end_address`),
		plainSpec(0x842, "CS_AUXILIARY_INFO", "cs_auxiliary_info", KindUint64),
	}
}
