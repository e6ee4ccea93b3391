package kcdata

// The specs of the L types; their structs and ids stand in linux.go. A key is
// also the name that the type's TYPEDEFINITION carries, so both stay short.
func linuxSpecs() []Spec {
	return []Spec{
		structSpec(TypeLinuxMachine, "LINUX_MACHINE", "linux_machine", LinuxMachine{}),
		bytewise(TypeLinuxHostname, "LINUX_HOSTNAME", "linux_hostname", KindString),
		bytewise(TypeLinuxRelease, "LINUX_RELEASE", "linux_release", KindString),
		bytewise(TypeLinuxBootID, "LINUX_BOOT_ID", "linux_boot_id", KindString),
		bytewise(TypeLinuxKernelBuild, "LINUX_KERNEL_BUILD", "linux_kernel_build", KindBytes),
		bytewise(TypeLinuxLoadavg, "LINUX_LOADAVG", "linux_loadavg", KindString),
		bytewise(TypeLinuxMeminfo, "LINUX_MEMINFO", "linux_meminfo", KindString),
		bytewise(TypeLinuxPressure, "LINUX_PRESSURE", "linux_pressure", KindString),
		structSpec(TypeLinuxCPU, "LINUX_CPU", "linux_cpu", LinuxCPU{}),
		structSpec(TypeLinuxModule, "LINUX_MODULE", "linux_module", LinuxModule{}),
		structSpec(TypeLinuxCapture, "LINUX_CAPTURE", "linux_capture", LinuxCapture{}),
		bytewise(TypeLinuxEngine, "LINUX_ENGINE", "linux_engine", KindString),
		bytewise(TypeLinuxIsolation, "LINUX_ISOLATION", "linux_isolation", KindString),
		bytewise(TypeLinuxWarning, "LINUX_WARNING", "linux_warning", KindString),
		structSpec(TypeLinuxLeftOut, "LINUX_LEFT_OUT", "linux_left_out", LinuxLeftOut{}),
		structSpec(TypeLinuxSymbol, "LINUX_SYMBOL", "linux_symbol", LinuxSymbol{}),
		bytewise(TypeLinuxStrings, "LINUX_STRINGS", "linux_strings", KindBytes),
		bytewise(TypeLinuxArch, "LINUX_ARCH", "linux_arch", KindString),
		bytewise(TypeLinuxToolVersion, "LINUX_TOOL_VERSION", "linux_tool_version", KindString),
		bytewise(TypeLinuxRequest, "LINUX_REQUEST", "linux_request", KindString),
		structSpec(TypeLinuxAtomicity, "LINUX_ATOMICITY", "linux_atomicity", LinuxAtomicity{}),
		structSpec(TypeLinuxRan, "LINUX_RAN", "linux_ran", LinuxRan{}),
		structSpec(TypeLinuxPhases, "LINUX_PHASES", "linux_phases", LinuxPhases{}),
		structSpec(TypeLinuxArena, "LINUX_ARENA", "linux_arena", LinuxArena{}),
		structSpec(TypeLinuxTry, "LINUX_TRY", "linux_try", LinuxTry{}),
		structSpec(TypeLinuxTrace, "LINUX_TRACE", "linux_trace", LinuxTrace{}),
		structSpec(TypeLinuxUserTaken, "LINUX_USER_TAKEN", "linux_user_taken", LinuxUserTaken{}),
		structSpec(TypeLinuxTask, "LINUX_TASK", "linux_task", LinuxTask{}),
		structSpec(TypeLinuxTaskMemory, "LINUX_TASK_MEMORY", "linux_task_memory", LinuxTaskMemory{}),
		structSpec(TypeLinuxTaskNS, "LINUX_TASK_NS", "linux_task_ns", LinuxTaskNS{}),
		text(structSpec(TypeLinuxTaskExe, "LINUX_TASK_EXE", "linux_task_exe", LinuxTaskExe{}), "name"),
		structSpec(TypeLinuxMapping, "LINUX_MAPPING", "linux_mapping", LinuxMapping{}),
		bytewise(TypeLinuxMapStrings, "LINUX_MAP_STRINGS", "linux_map_strings", KindBytes),
		structSpec(TypeLinuxUserSymbol, "LINUX_USER_SYMBOL", "linux_user_symbol", LinuxUserSymbol{}),
		bytewise(TypeLinuxPerfMap, "LINUX_PERF_MAP", "linux_perf_map", KindString),
		bytewise(TypeLinuxMapName, "LINUX_MAP_NAME", "linux_map_name", KindString),
		structSpec(TypeLinuxMapWalk, "LINUX_MAP_WALK", "linux_map_walk", LinuxMapWalk{}),
		bytewise(TypeLinuxCmdlineSeen, "LINUX_CMDLINE_SEEN", "linux_cmdline_seen", KindBytes),
		bytewise(TypeLinuxExePath, "LINUX_EXE_PATH", "linux_exe_path", KindString),
		bytewise(TypeLinuxCmdline, "LINUX_CMDLINE", "linux_cmdline", KindBytes),
		bytewise(TypeLinuxCgroupPath, "LINUX_CGROUP_PATH", "linux_cgroup_path", KindString),
		bytewise(TypeLinuxEnrichFailed, "LINUX_ENRICH_FAILED", "linux_enrich_failed", KindString),
		structSpec(TypeLinuxThread, "LINUX_THREAD", "linux_thread", LinuxThread{}),
		structSpec(TypeLinuxSyscall, "LINUX_SYSCALL", "linux_syscall", LinuxSyscall{}),
		structSpec(TypeLinuxThreadIO, "LINUX_THREAD_IO", "linux_thread_io", LinuxThreadIO{}),
		structSpec(TypeLinuxDelays, "LINUX_DELAYS", "linux_delays", LinuxDelays{}),
		structSpec(TypeLinuxSignals, "LINUX_SIGNALS", "linux_signals", LinuxSignals{}),
		structSpec(TypeLinuxThreadNS, "LINUX_THREAD_NS", "linux_thread_ns", LinuxThreadNS{}),
		structSpec(TypeLinuxRegisters, "LINUX_REGISTERS", "linux_registers", LinuxRegister{}),
		structSpec(TypeLinuxSample, "LINUX_SAMPLE", "linux_sample", LinuxSample{}),
		structSpec(TypeLinuxUserWalk, "LINUX_USER_WALK", "linux_user_walk", LinuxUserWalk{}),
		structSpec(TypeLinuxUserChain, "LINUX_USER_CHAIN", "linux_user_chain", LinuxUserLink{}),
		bytewise(TypeLinuxUserBytes, "LINUX_USER_BYTES", "linux_user_bytes", KindBytes),
		bytewise(TypeLinuxUserHow, "LINUX_USER_HOW", "linux_user_how", KindBytes),
		bytewise(TypeLinuxWchan, "LINUX_WCHAN", "linux_wchan", KindString),
	}
}

// text marks the byte arrays among s's fields that hold NUL-terminated text.
func text(s Spec, names ...string) Spec {
	for i := range s.Fields {
		for _, n := range names {
			if s.Fields[i].Name == n {
				s.Fields[i].Elem = ElemChar
			}
		}
	}
	return s
}
