package kcdata

// Part is a stretch of a file in which items stand side by side.
type Part string

// The parts of a file of ours.
const (
	PartBefore Part = "before the tasks"
	PartTask   Part = "task"
	PartThread Part = "thread"
	PartAfter  Part = "after the tasks"
)

// Place is where items of one kind stand in a file of ours.
type Place struct {
	Part  Part
	Type  Type   // of the item; of an array's elements; of a container
	Desc  string // name of a desc
	Array bool   // an array of records; text and bytes (Spec.Bytewise) are always one
	Many  bool   // any number of items
	Loose bool   // not in the order of this list
	When  string // "": always
}

// Layout lists the places in the order in which their items stand; each is there at
// most once if it is not Many. Tests hold every file that they make against it (package
// testread).
var Layout = []Place{
	{Part: PartBefore, Type: TypeDefinition, Many: true, When: "one for each record of ours"},
	{Part: PartBefore, Type: TypeUint64Desc, Desc: "stackshot_in_flags"},
	{Part: PartBefore, Type: TypeUint32Desc, Desc: "stackshot_in_pid"},
	{Part: PartBefore, Type: TypeUint64Desc, Desc: "system_state_flags"},
	{Part: PartBefore, Type: TypeUint32Desc, Desc: "stackshot_size_estimate"},
	{Part: PartBefore, Type: TypeUint32Desc, Desc: "stackshot_size_estimate_adj"},
	{Part: PartBefore, Type: TypeKernPageSize},
	{Part: PartBefore, Type: TypeOSVersion},
	{Part: PartBefore, Type: TypeBootArgs, When: "not with `--redact`"},
	{Part: PartBefore, Type: TypeTimebase},
	{Part: PartBefore, Type: TypeMachAbsoluteTime},
	{Part: PartBefore, Type: TypeUsecsSinceEpoch},
	{Part: PartBefore, Type: TypeLinuxMachine},
	{Part: PartBefore, Type: TypeLinuxHostname},
	{Part: PartBefore, Type: TypeLinuxRelease},
	{Part: PartBefore, Type: TypeLinuxArch},
	{Part: PartBefore, Type: TypeLinuxBootID, When: "where it could be read"},
	{Part: PartBefore, Type: TypeLinuxKernelBuild, When: "where it could be read"},
	{Part: PartBefore, Type: TypeLinuxToolVersion},
	{Part: PartBefore, Type: TypeLinuxRequest, When: "where the scope has words"},
	{Part: PartBefore, Type: TypeLinuxEngine},
	{Part: PartBefore, Type: TypeLinuxIsolation},
	{Part: PartBefore, Type: TypeLinuxLoadavg, When: "where it could be read"},
	{Part: PartBefore, Type: TypeLinuxMeminfo, When: "where it could be read"},
	{Part: PartBefore, Type: TypeLinuxPressure, When: "where the kernel has PSI"},

	{Part: PartTask, Type: TypeTaskSnapshot, When: "in a `TASK`"},
	{Part: PartTask, Type: TypeTransitioningSnapshot, When: "in a `TRANSITIONING_TASK`"},
	{Part: PartTask, Type: TypeLinuxTask},
	{Part: PartTask, Type: TypeLinuxTaskNS},
	{Part: PartTask, Type: TypeLinuxTaskMemory, When: "with user space"},
	{Part: PartTask, Type: TypeLinuxTaskExe, When: "with user space; not by engine `procfs`"},
	{Part: PartTask, Type: TypeLinuxMapping, Array: true, Many: true, Loose: true, When: "as the stop recorded them of a task that `/proc` did not know any more: arrays of one, each with its name behind it; engine `pull` has these, their names and the two records below behind the threads"},
	{Part: PartTask, Type: TypeLinuxMapName, Many: true, Loose: true, When: "behind a `LINUX_MAPPING` of these"},
	{Part: PartTask, Type: TypeLinuxMapWalk, Loose: true, When: "where the stop recorded mappings"},
	{Part: PartTask, Type: TypeLinuxCmdlineSeen, Loose: true, When: "where the stop recorded mappings"},
	{Part: PartTask, Type: TypeThread, Many: true, When: "one container for each thread, leader first"},
	{Part: PartTask, Type: TypeLinuxCgroupPath, When: "where it could be read"},
	{Part: PartTask, Type: TypeCrashProcPath, When: "with user space, where it could be read"},
	{Part: PartTask, Type: TypeLinuxExePath, When: "in its place where the path has 1,024 bytes and more"},
	{Part: PartTask, Type: TypeLinuxCmdline, When: "with user space, where it could be read; not with `--redact`"},
	{Part: PartTask, Type: TypeLatencyInfoTask, When: "not with `--latency off`"},
	{Part: PartTask, Type: TypeLinuxMapping, Array: true, When: "with user space, where they could be read; not with `--redact`"},
	{Part: PartTask, Type: TypeLinuxMapStrings, When: "with `LINUX_MAPPING` or `LINUX_USER_SYMBOL`"},
	{Part: PartTask, Type: TypeLinuxUserSymbol, Array: true, When: "where user stacks have names"},
	{Part: PartTask, Type: TypeLinuxPerfMap, When: "where there is one"},
	{Part: PartTask, Type: TypeLinuxEnrichFailed, Many: true, Loose: true, When: "for each thing that could not be read"},

	{Part: PartThread, Type: TypeThreadSnapshot},
	{Part: PartThread, Type: TypeThreadName},
	{Part: PartThread, Type: TypeCPUTimes},
	{Part: PartThread, Type: TypeLinuxThread},
	{Part: PartThread, Type: TypeLinuxSignals, When: "by engine `procfs`: where it could be read"},
	{Part: PartThread, Type: TypeKernStackLR64, Array: true, Loose: true, When: "where there is a kernel stack; one from a `LINUX_SAMPLE` stands before that"},
	{Part: PartThread, Type: TypeLinuxThreadIO, When: "where the kernel counts it; not of an idle thread"},
	{Part: PartThread, Type: TypeLinuxDelays, When: "where delay accounting is on; not of an idle thread, nor by engine `procfs`"},
	{Part: PartThread, Type: TypeLinuxWchan, When: "engine `procfs` only"},
	{Part: PartThread, Type: TypeLinuxThreadNS, Array: true, When: "below the first pid namespace"},
	{Part: PartThread, Type: TypeLinuxSyscall, When: "with user registers"},
	{Part: PartThread, Type: TypeLinuxRegisters, Array: true, When: "with user registers; not by engine `procfs`, nor with `--redact`"},
	{Part: PartThread, Type: TypeLinuxUserChain, Array: true, When: "with `--keep-stacks`, or kept to mend"},
	{Part: PartThread, Type: TypeLinuxUserBytes, Many: true, When: "with `--keep-stacks`, or kept to mend"},
	{Part: PartThread, Type: TypeLinuxUserWalk, When: "with user registers, not with `--user-stacks off`, `--redact` or engine `procfs`"},
	{Part: PartThread, Type: TypeLatencyInfoThread, When: "with `--latency thread`; not of an idle thread, nor by engine `procfs`"},
	{Part: PartThread, Type: TypeUserStackLR64, Array: true, When: "where there is a user stack"},
	{Part: PartThread, Type: TypeLinuxUserHow, When: "with `USER_STACKLR64`, unless that is from a `LINUX_SAMPLE`"},
	{Part: PartThread, Type: TypeLinuxSample, Loose: true, When: "of a CPU that was not stopped"},

	{Part: PartAfter, Type: TypeUint64Desc, Desc: "stackshot_tasks_count"},
	{Part: PartAfter, Type: TypeUint64Desc, Desc: "stackshot_threads_count"},
	{Part: PartAfter, Type: TypeUint64Desc, Desc: "stackshot_buf_overhead"},
	{Part: PartAfter, Type: TypeLinuxCPU, Array: true},
	{Part: PartAfter, Type: TypeLinuxLeftOut, Array: true, When: "where something is missing"},
	{Part: PartAfter, Type: TypeLinuxWarning, Many: true, When: "for each warning"},
	{Part: PartAfter, Type: TypeLinuxModule, Array: true, When: "where modules are loaded and may be read"},
	{Part: PartAfter, Type: TypeLinuxSymbol, Array: true, When: "where kernel addresses have names"},
	{Part: PartAfter, Type: TypeLinuxStrings},
	{Part: PartAfter, Type: TypeLinuxCapture},
	{Part: PartAfter, Type: TypeLinuxUserTaken, When: "where a user stack was taken"},
	{Part: PartAfter, Type: TypeLinuxAtomicity, When: "where something was read twice"},
	{Part: PartAfter, Type: TypeLinuxRan, Array: true, When: "with `LINUX_ATOMICITY`, where a thread ran"},
	{Part: PartAfter, Type: TypeLinuxTry, Array: true, When: "not by engine `procfs` alone"},
	{Part: PartAfter, Type: TypeLinuxTrace, Array: true, When: "with `--trace`, or when something went wrong"},
	{Part: PartAfter, Type: TypeLinuxPhases, Array: true, When: "not with `--latency off`, where CPUs were stopped"},
	{Part: PartAfter, Type: TypeLinuxArena, Array: true, When: "not with `--latency off`, where there were arenas"},
	{Part: PartAfter, Type: TypeLatencyInfoCPU, Array: true, When: "not with `--latency off`; of no elements where no CPU worked"},
	{Part: PartAfter, Type: TypeLatencyInfo, When: "not with `--latency off`"},
	{Part: PartAfter, Type: TypeDuration},
	{Part: PartAfter, Type: TypeUint64Desc, Desc: "stackshot_tries"},
	{Part: PartAfter, Type: TypeUint64Desc, Desc: "stackshot_out_flags"},
}
