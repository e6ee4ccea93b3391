package testread

import "stackshot/kcdata"

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
	Type  kcdata.Type // of the item; of an array's elements; of a container
	Desc  string      // name of a desc
	Array bool        // an array of records; text and bytes (Spec.Bytewise) are always one
	Many  bool        // any number of items
	Loose bool        // not in the order of this list
	When  string      // "": always
}

// Layout lists the places in the order in which their items stand. A place that is not
// Many has at most one item. Tests compare every file that they make with this list, and
// docs/format.md has it as tables.
var Layout = []Place{
	{Part: PartBefore, Type: kcdata.TypeDefinition, Many: true, When: "one for each record of ours"},
	{Part: PartBefore, Type: kcdata.TypeUint64Desc, Desc: "stackshot_in_flags"},
	{Part: PartBefore, Type: kcdata.TypeUint32Desc, Desc: "stackshot_in_pid"},
	{Part: PartBefore, Type: kcdata.TypeUint64Desc, Desc: "system_state_flags"},
	{Part: PartBefore, Type: kcdata.TypeUint32Desc, Desc: "stackshot_size_estimate"},
	{Part: PartBefore, Type: kcdata.TypeUint32Desc, Desc: "stackshot_size_estimate_adj"},
	{Part: PartBefore, Type: kcdata.TypeKernPageSize},
	{Part: PartBefore, Type: kcdata.TypeOSVersion},
	{Part: PartBefore, Type: kcdata.TypeBootArgs, When: "not with `--redact`"},
	{Part: PartBefore, Type: kcdata.TypeTimebase},
	{Part: PartBefore, Type: kcdata.TypeMachAbsoluteTime},
	{Part: PartBefore, Type: kcdata.TypeUsecsSinceEpoch},
	{Part: PartBefore, Type: kcdata.TypeLinuxMachine},
	{Part: PartBefore, Type: kcdata.TypeLinuxHostname},
	{Part: PartBefore, Type: kcdata.TypeLinuxRelease},
	{Part: PartBefore, Type: kcdata.TypeLinuxArch},
	{Part: PartBefore, Type: kcdata.TypeLinuxBootID, When: "where it could be read"},
	{Part: PartBefore, Type: kcdata.TypeLinuxKernelBuild, When: "where it could be read"},
	{Part: PartBefore, Type: kcdata.TypeLinuxToolVersion},
	{Part: PartBefore, Type: kcdata.TypeLinuxRequest, When: "where the scope has words"},
	{Part: PartBefore, Type: kcdata.TypeLinuxEngine},
	{Part: PartBefore, Type: kcdata.TypeLinuxIsolation},
	{Part: PartBefore, Type: kcdata.TypeLinuxLoadavg, When: "where it could be read"},
	{Part: PartBefore, Type: kcdata.TypeLinuxMeminfo, When: "where it could be read"},
	{Part: PartBefore, Type: kcdata.TypeLinuxPressure, When: "where the kernel has PSI"},

	{Part: PartTask, Type: kcdata.TypeTaskSnapshot, When: "in a `TASK`"},
	{Part: PartTask, Type: kcdata.TypeTransitioningSnapshot, When: "in a `TRANSITIONING_TASK`"},
	{Part: PartTask, Type: kcdata.TypeLinuxTask},
	{Part: PartTask, Type: kcdata.TypeLinuxTaskNS},
	{Part: PartTask, Type: kcdata.TypeLinuxTaskMemory, When: "with user space"},
	{Part: PartTask, Type: kcdata.TypeLinuxTaskExe, When: "with user space; not by engine `procfs`"},
	{Part: PartTask, Type: kcdata.TypeLinuxMapping, Array: true, Many: true, Loose: true, When: "as the stop recorded them of a task that `/proc` did not know any more: arrays of one, each with its name behind it; engine `pull` has these, their names and the two records below behind the threads"},
	{Part: PartTask, Type: kcdata.TypeLinuxMapName, Many: true, Loose: true, When: "behind a `LINUX_MAPPING` of these"},
	{Part: PartTask, Type: kcdata.TypeLinuxMapWalk, Loose: true, When: "where the stop recorded mappings"},
	{Part: PartTask, Type: kcdata.TypeLinuxCmdlineSeen, Loose: true, When: "where the stop recorded mappings"},
	{Part: PartTask, Type: kcdata.TypeThread, Many: true, When: "one container for each thread, leader first"},
	{Part: PartTask, Type: kcdata.TypeLinuxCgroupPath, When: "where it could be read"},
	{Part: PartTask, Type: kcdata.TypeCrashProcPath, When: "with user space, where it could be read"},
	{Part: PartTask, Type: kcdata.TypeLinuxExePath, When: "in its place where the path has 1,024 bytes and more"},
	{Part: PartTask, Type: kcdata.TypeLinuxCmdline, When: "with user space, where it could be read; not with `--redact`"},
	{Part: PartTask, Type: kcdata.TypeLatencyInfoTask, When: "not with `--latency off`"},
	{Part: PartTask, Type: kcdata.TypeLinuxMapping, Array: true, When: "with user space, where they could be read; not with `--redact`"},
	{Part: PartTask, Type: kcdata.TypeLinuxMapStrings, When: "with `LINUX_MAPPING` or `LINUX_USER_SYMBOL`"},
	{Part: PartTask, Type: kcdata.TypeLinuxUserSymbol, Array: true, When: "where user stacks have names"},
	{Part: PartTask, Type: kcdata.TypeLinuxPerfMap, When: "where there is one"},
	{Part: PartTask, Type: kcdata.TypeLinuxEnrichFailed, Many: true, Loose: true, When: "for each thing that could not be read"},

	{Part: PartThread, Type: kcdata.TypeThreadSnapshot},
	{Part: PartThread, Type: kcdata.TypeThreadName},
	{Part: PartThread, Type: kcdata.TypeCPUTimes},
	{Part: PartThread, Type: kcdata.TypeLinuxThread},
	{Part: PartThread, Type: kcdata.TypeLinuxSignals, When: "by engine `procfs`: where it could be read"},
	{Part: PartThread, Type: kcdata.TypeKernStackLR64, Array: true, Loose: true, When: "where there is a kernel stack; one from a `LINUX_SAMPLE` stands before that"},
	{Part: PartThread, Type: kcdata.TypeLinuxThreadIO, When: "where the kernel counts it; not of an idle thread"},
	{Part: PartThread, Type: kcdata.TypeLinuxDelays, When: "where delay accounting is on; not of an idle thread, nor by engine `procfs`"},
	{Part: PartThread, Type: kcdata.TypeLinuxWchan, When: "engine `procfs` only"},
	{Part: PartThread, Type: kcdata.TypeLinuxThreadNS, Array: true, When: "below the first pid namespace"},
	{Part: PartThread, Type: kcdata.TypeLinuxSyscall, When: "with user registers"},
	{Part: PartThread, Type: kcdata.TypeLinuxRegisters, Array: true, When: "with user registers; not by engine `procfs`, nor with `--redact`"},
	{Part: PartThread, Type: kcdata.TypeLinuxUserChain, Array: true, When: "with `--keep-stacks`, or kept to mend"},
	{Part: PartThread, Type: kcdata.TypeLinuxUserBytes, Many: true, When: "with `--keep-stacks`, or kept to mend"},
	{Part: PartThread, Type: kcdata.TypeLinuxUserWalk, When: "with user registers, not with `--user-stacks off`, `--redact` or engine `procfs`"},
	{Part: PartThread, Type: kcdata.TypeLatencyInfoThread, When: "with `--latency thread`; not of an idle thread, nor by engine `procfs`"},
	{Part: PartThread, Type: kcdata.TypeUserStackLR64, Array: true, When: "where there is a user stack"},
	{Part: PartThread, Type: kcdata.TypeLinuxUserHow, When: "with `USER_STACKLR64`, unless that is from a `LINUX_SAMPLE`"},
	{Part: PartThread, Type: kcdata.TypeLinuxSample, Loose: true, When: "of a CPU that was not stopped"},

	{Part: PartAfter, Type: kcdata.TypeUint64Desc, Desc: "stackshot_tasks_count"},
	{Part: PartAfter, Type: kcdata.TypeUint64Desc, Desc: "stackshot_threads_count"},
	{Part: PartAfter, Type: kcdata.TypeUint64Desc, Desc: "stackshot_buf_overhead"},
	{Part: PartAfter, Type: kcdata.TypeLinuxCPU, Array: true},
	{Part: PartAfter, Type: kcdata.TypeLinuxLeftOut, Array: true, When: "where something is missing"},
	{Part: PartAfter, Type: kcdata.TypeLinuxWarning, Many: true, When: "for each warning"},
	{Part: PartAfter, Type: kcdata.TypeLinuxModule, Array: true, When: "where modules are loaded and may be read"},
	{Part: PartAfter, Type: kcdata.TypeLinuxSymbol, Array: true, When: "where kernel addresses have names"},
	{Part: PartAfter, Type: kcdata.TypeLinuxStrings},
	{Part: PartAfter, Type: kcdata.TypeLinuxCapture},
	{Part: PartAfter, Type: kcdata.TypeLinuxUserTaken, When: "where a user stack was taken"},
	{Part: PartAfter, Type: kcdata.TypeLinuxAtomicity, When: "where something was read twice"},
	{Part: PartAfter, Type: kcdata.TypeLinuxRan, Array: true, When: "with `LINUX_ATOMICITY`, where a thread ran"},
	{Part: PartAfter, Type: kcdata.TypeLinuxTry, Array: true, When: "not by engine `procfs` alone"},
	{Part: PartAfter, Type: kcdata.TypeLinuxTrace, Array: true, When: "with `--trace`, or when something went wrong"},
	{Part: PartAfter, Type: kcdata.TypeLinuxPhases, Array: true, When: "not with `--latency off`, where CPUs were stopped"},
	{Part: PartAfter, Type: kcdata.TypeLinuxArena, Array: true, When: "not with `--latency off`, where there were arenas"},
	{Part: PartAfter, Type: kcdata.TypeLatencyInfoCPU, Array: true, When: "not with `--latency off`; of no elements where no CPU worked"},
	{Part: PartAfter, Type: kcdata.TypeLatencyInfo, When: "not with `--latency off`"},
	{Part: PartAfter, Type: kcdata.TypeDuration},
	{Part: PartAfter, Type: kcdata.TypeUint64Desc, Desc: "stackshot_tries"},
	{Part: PartAfter, Type: kcdata.TypeUint64Desc, Desc: "stackshot_out_flags"},
}
