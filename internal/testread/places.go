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
	{Part: PartBefore, Type: kcdata.TypeDefinition, Many: true, When: "one for each type of ours"},
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
	{Part: PartBefore, Type: kcdata.TypeLinuxBootID, When: "if it could be read"},
	{Part: PartBefore, Type: kcdata.TypeLinuxKernelBuild, When: "if it could be read"},
	{Part: PartBefore, Type: kcdata.TypeLinuxToolVersion},
	{Part: PartBefore, Type: kcdata.TypeLinuxRequest, When: "if the scope has words"},
	{Part: PartBefore, Type: kcdata.TypeLinuxEngine},
	{Part: PartBefore, Type: kcdata.TypeLinuxIsolation},
	{Part: PartBefore, Type: kcdata.TypeLinuxPanic, When: "engines `panic` and `sysrq`"},
	{Part: PartBefore, Type: kcdata.TypeLinuxLoadavg, When: "if it could be read"},
	{Part: PartBefore, Type: kcdata.TypeLinuxMeminfo, When: "if it could be read"},
	{Part: PartBefore, Type: kcdata.TypeLinuxPressure, When: "if the kernel has PSI"},

	{Part: PartTask, Type: kcdata.TypeTaskSnapshot, When: "in a `TASK`"},
	{Part: PartTask, Type: kcdata.TypeTransitioningSnapshot, When: "in a `TRANSITIONING_TASK`"},
	{Part: PartTask, Type: kcdata.TypeLinuxTask},
	{Part: PartTask, Type: kcdata.TypeLinuxTaskNS},
	{Part: PartTask, Type: kcdata.TypeLinuxTaskMemory, When: "with user space"},
	{Part: PartTask, Type: kcdata.TypeLinuxTaskExe, When: "with user space; not with engine `procfs`"},
	{Part: PartTask, Type: kcdata.TypeLinuxMapping, Array: true, Many: true, Loose: true, When: "as the stop recorded them, for a task that `/proc` did not know any more: arrays of one mapping, each with its name behind it. Engine `pull` writes these, their names and the next two records behind the threads"},
	{Part: PartTask, Type: kcdata.TypeLinuxMapName, Many: true, Loose: true, When: "behind such a `LINUX_MAPPING`"},
	{Part: PartTask, Type: kcdata.TypeLinuxMapWalk, Loose: true, When: "if the stop recorded mappings"},
	{Part: PartTask, Type: kcdata.TypeLinuxCmdlineSeen, Loose: true, When: "if the stop recorded mappings"},
	{Part: PartTask, Type: kcdata.TypeThread, Many: true, When: "one container for each thread, leader first"},
	{Part: PartTask, Type: kcdata.TypeLinuxCgroupPath, When: "if it could be read"},
	{Part: PartTask, Type: kcdata.TypeLinuxMemoryCgroup, When: "with `LINUX_CGROUP_PATH`, where the memory controller is of version 1"},
	{Part: PartTask, Type: kcdata.TypeCrashProcPath, When: "with user space, if it could be read"},
	{Part: PartTask, Type: kcdata.TypeLinuxExePath, When: "instead of `PROC_PATH`, if the path has 1,024 bytes or more"},
	{Part: PartTask, Type: kcdata.TypeLinuxCmdline, When: "with user space, if it could be read; not with `--redact`"},
	{Part: PartTask, Type: kcdata.TypeLatencyInfoTask, When: "not with `--latency off`"},
	{Part: PartTask, Type: kcdata.TypeLinuxMapping, Array: true, When: "with user space, if they could be read; not with `--redact`"},
	{Part: PartTask, Type: kcdata.TypeLinuxMapStrings, When: "with `LINUX_MAPPING` or `LINUX_USER_SYMBOL`"},
	{Part: PartTask, Type: kcdata.TypeLinuxUserSymbol, Array: true, When: "if addresses of user stacks have names"},
	{Part: PartTask, Type: kcdata.TypeLinuxPerfMap, When: "if there is one"},
	{Part: PartTask, Type: kcdata.TypeThreadWaitinfo, Array: true, Loose: true, When: "if threads of the task wait for a lock of a kind that Apple has"},
	{Part: PartTask, Type: kcdata.TypeLinuxEnrichFailed, Many: true, Loose: true, When: "for each thing that could not be read"},

	{Part: PartThread, Type: kcdata.TypeThreadSnapshot},
	{Part: PartThread, Type: kcdata.TypeThreadName},
	{Part: PartThread, Type: kcdata.TypeCPUTimes},
	{Part: PartThread, Type: kcdata.TypeLinuxThread},
	{Part: PartThread, Type: kcdata.TypeLinuxSignals, When: "with engine `procfs`: if it could be read"},
	{Part: PartThread, Type: kcdata.TypeKernStackLR64, Array: true, Loose: true, When: "if there is a kernel stack; a stack from a `LINUX_SAMPLE` stands before that item"},
	{Part: PartThread, Type: kcdata.TypeLinuxThreadIO, When: "if the kernel counts it; not for an idle thread"},
	{Part: PartThread, Type: kcdata.TypeLinuxDelays, When: "if delay accounting is on; not for an idle thread, nor with engine `procfs`"},
	{Part: PartThread, Type: kcdata.TypeLinuxWchan, When: "engine `procfs` only"},
	{Part: PartThread, Type: kcdata.TypeLinuxThreadNS, Array: true, When: "below the first pid namespace"},
	{Part: PartThread, Type: kcdata.TypeLinuxSyscall, When: "with user registers"},
	{Part: PartThread, Type: kcdata.TypeLinuxRegisters, Array: true, When: "with user registers; not with engine `procfs`, nor with `--redact`"},
	{Part: PartThread, Type: kcdata.TypeLinuxWait, When: "if there is something to say; not with `--wait off` or engine `procfs`"},
	{Part: PartThread, Type: kcdata.TypeLinuxFutex, Array: true, When: "if the thread sleeps in a call that waits for futexes; not with `--wait off` or engine `procfs`"},
	{Part: PartThread, Type: kcdata.TypeLinuxFile, Array: true, When: "if the thread sleeps in a call with a descriptor; not with `--wait off` or engine `procfs`"},
	{Part: PartThread, Type: kcdata.TypeLinuxSocket, Array: true, When: "if one of its `LINUX_FILE` is a socket"},
	{Part: PartThread, Type: kcdata.TypeLinuxUserChain, Array: true, When: "with `--keep-stacks`, or with `UserKeptToMend`"},
	{Part: PartThread, Type: kcdata.TypeLinuxUserBytes, Many: true, When: "with `--keep-stacks`, or with `UserKeptToMend`"},
	{Part: PartThread, Type: kcdata.TypeLinuxUserWalk, When: "with user registers, or with engine `procfs` where the thread may be traced; not with `--user-stacks off` or `--redact`"},
	{Part: PartThread, Type: kcdata.TypeLatencyInfoThread, When: "with `--latency thread`; not for an idle thread, nor with engine `procfs`"},
	{Part: PartThread, Type: kcdata.TypeUserStackLR64, Array: true, When: "if there is a user stack"},
	{Part: PartThread, Type: kcdata.TypeLinuxUserHow, When: "with `USER_STACKLR64`, unless that comes from a `LINUX_SAMPLE`"},
	{Part: PartThread, Type: kcdata.TypeLinuxSample, Loose: true, When: "if the thread ran on a CPU that was not stopped"},

	{Part: PartAfter, Type: kcdata.TypeUint64Desc, Desc: "stackshot_tasks_count"},
	{Part: PartAfter, Type: kcdata.TypeUint64Desc, Desc: "stackshot_threads_count"},
	{Part: PartAfter, Type: kcdata.TypeUint64Desc, Desc: "stackshot_buf_overhead"},
	{Part: PartAfter, Type: kcdata.TypeLinuxCPU, Array: true},
	{Part: PartAfter, Type: kcdata.TypeLinuxLeftOut, Array: true, When: "if something is missing"},
	{Part: PartAfter, Type: kcdata.TypeLinuxWarning, Many: true, When: "for each warning"},
	{Part: PartAfter, Type: kcdata.TypeLinuxModule, Array: true, When: "if modules are loaded and may be read"},
	{Part: PartAfter, Type: kcdata.TypeLinuxSymbol, Array: true, When: "if kernel addresses have names"},
	{Part: PartAfter, Type: kcdata.TypeLinuxStrings},
	{Part: PartAfter, Type: kcdata.TypeLinuxCapture},
	{Part: PartAfter, Type: kcdata.TypeLinuxUserTaken, When: "if a user stack was taken"},
	{Part: PartAfter, Type: kcdata.TypeLinuxWaitTaken, When: "not with `--wait off` or engine `procfs`"},
	{Part: PartAfter, Type: kcdata.TypeLinuxFilesTaken, When: "not with `--wait off` or engine `procfs`"},
	{Part: PartAfter, Type: kcdata.TypeLinuxEnd, Array: true, When: "if other ends were found"},
	{Part: PartAfter, Type: kcdata.TypeLinuxFileLock, Array: true, When: "if threads wait at files with locks"},
	{Part: PartAfter, Type: kcdata.TypeLinuxMount, Array: true, When: "if mounts could be read"},
	{Part: PartAfter, Type: kcdata.TypeLinuxDevice, Array: true, When: "if there are block devices"},
	{Part: PartAfter, Type: kcdata.TypeLinuxFUSE, Array: true, When: "if a FUSE server has unanswered requests"},
	{Part: PartAfter, Type: kcdata.TypeLinuxCgroupsTaken, When: "unless the program was told not to look"},
	{Part: PartAfter, Type: kcdata.TypeLinuxCgroup, Array: true, When: "if there are control groups with a memory controller"},
	{Part: PartAfter, Type: kcdata.TypeLinuxAtomicity, When: "if something was read twice"},
	{Part: PartAfter, Type: kcdata.TypeLinuxRan, Array: true, When: "with `LINUX_ATOMICITY`, if a thread ran"},
	{Part: PartAfter, Type: kcdata.TypeLinuxTry, Array: true, When: "not with engine `procfs` alone"},
	{Part: PartAfter, Type: kcdata.TypeLinuxTrace, Array: true, When: "with `--trace`, or when something went wrong"},
	{Part: PartAfter, Type: kcdata.TypeLinuxPhases, Array: true, When: "not with `--latency off`, if CPUs were stopped"},
	{Part: PartAfter, Type: kcdata.TypeLinuxArena, Array: true, When: "not with `--latency off`, if there were arenas"},
	{Part: PartAfter, Type: kcdata.TypeLatencyInfoCPU, Array: true, When: "not with `--latency off`; without elements if no CPU recorded"},
	{Part: PartAfter, Type: kcdata.TypeLatencyInfo, When: "not with `--latency off`"},
	{Part: PartAfter, Type: kcdata.TypeDuration},
	{Part: PartAfter, Type: kcdata.TypeUint64Desc, Desc: "stackshot_tries"},
	{Part: PartAfter, Type: kcdata.TypeUint64Desc, Desc: "stackshot_out_flags"},
}
