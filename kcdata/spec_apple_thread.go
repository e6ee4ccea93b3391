package kcdata

// ThreadSnapshot describes a thread (version 4, 128 bytes; 2: 104; 3: 112).
type ThreadSnapshot struct {
	ThreadID             uint64 `kc:"ths_thread_id"`
	WaitEvent            uint64 `kc:"ths_wait_event"`
	Continuation         uint64 `kc:"ths_continuation"`
	TotalSyscalls        uint64 `kc:"ths_total_syscalls"`
	VoucherIdentifier    uint64 `kc:"ths_voucher_identifier"`
	DQSerialNum          uint64 `kc:"ths_dqserialnum"`
	UserTime             uint64 `kc:"ths_user_time"`               // ticks
	SysTime              uint64 `kc:"ths_sys_time"`                // ticks
	SSFlags              uint64 `kc:"ths_ss_flags"`                //
	LastRunTime          uint64 `kc:"ths_last_run_time"`           // ticks
	LastMadeRunnableTime uint64 `kc:"ths_last_made_runnable_time"` // ticks
	State                uint32 `kc:"ths_state"`
	SchedFlags           uint32 `kc:"ths_sched_flags"`
	BasePriority         int16  `kc:"ths_base_priority"`
	SchedPriority        int16  `kc:"ths_sched_priority"`
	EQoS                 uint8  `kc:"ths_eqos"`
	RQoS                 uint8  `kc:"ths_rqos"`
	RQoSOverride         uint8  `kc:"ths_rqos_override"`
	IOTier               uint8  `kc:"ths_io_tier"`
	ThreadT              uint64 `kc:"ths_thread_t"` // since version 3
	RequestedPolicy      uint64 `kc:"ths_requested_policy"`
	EffectivePolicy      uint64 `kc:"ths_effective_policy"`
}

// CPUTimes is a thread's time on, and waiting for, a CPU (version 2, 24 bytes).
type CPUTimes struct {
	UserUsec     uint64 `kc:"user_usec"`
	SystemUsec   uint64 `kc:"system_usec"`
	RunnableUsec uint64 `kc:"runnable_usec"` // since version 2
}

// Values of ThreadWaitinfo.WaitType, of those that Apple has (osfmk/kern/block_hint.h of XNU).
const (
	HintKernelMutex        = 0x1
	HintSemaphore          = 0x6
	HintKernelRWLockRead   = 0x7
	HintKernelRWLockWrite  = 0x8
	HintPthreadMutex       = 0xb
	HintPthreadRWLockRead  = 0xc
	HintPthreadRWLockWrite = 0xd
)

// ThreadWaitinfo says what one thread of the task waits for (version 2, 31 bytes; 1: 25).
type ThreadWaitinfo struct {
	Owner       uint64 `kc:"owner"`        // a thread; of a semaphore a process; 0: not known
	Waiter      uint64 `kc:"waiter"`       // a thread
	Context     uint64 `kc:"context"`      // address of the lock
	WaitType    uint8  `kc:"wait_type"`    // Hint*
	PortLabelID int16  `kc:"portlabel_id"` // since version 2
	WaitFlags   uint32 `kc:"wait_flags"`
}

const turnstileinfo = `
	uint64_t waiter, turnstile_context;
	uint8_t turnstile_priority, number_of_hops;
	uint64_t turnstile_flags;
	int16_t portlabel_id;`

const threadDeltaSnapshot = `
	uint64_t tds_thread_id, tds_voucher_identifier, tds_ss_flags, tds_last_made_runnable_time;
	uint32_t tds_state, tds_sched_flags;
	int16_t tds_base_priority, tds_sched_priority;
	uint8_t tds_eqos, tds_rqos, tds_rqos_override, tds_io_tier;
	uint64_t tds_requested_policy, tds_effective_policy;`

const stackFrame32 = `uint32_t lr, sp`
const stackFrame64 = `uint64_t lr, sp`
const stackLR32 = `uint32_t lr`
const stackLR64 = `uint64_t lr`
const instrsCycles = `uint64_t ics_instructions, ics_cycles, ics_p_instructions, ics_p_cycles`

func threadSpecs() []Spec {
	const kernel, user, async = "kernel_stack_frames", "user_stack_frames", "user_async_stack_frames"
	return []Spec{
		plainSpec(TypeThread, "THREAD", "thread_snapshots", KindContainer),
		structSpec(TypeThreadSnapshot, "THREAD_SNAPSHOT", "thread_snapshot", ThreadSnapshot{}, 104, 112),
		declared(TypeThreadDeltaSnapshot, "THREAD_DELTA_SNAPSHOT", "thread_delta_snapshot", threadDeltaSnapshot, 48),
		plainSpec(TypeThreadName, "THREAD_NAME", "pth_name", KindString),
		plainSpec(0x928, "THREAD_DISPATCH_QUEUE_LABEL", "dispatch_queue_label", KindString),
		declared(TypeKernStackFrame, "KERN_STACKFRAME", kernel, stackFrame32),
		declared(TypeKernStackFrame64, "KERN_STACKFRAME64", kernel, stackFrame64),
		declared(TypeUserStackFrame, "USER_STACKFRAME", user, stackFrame32),
		declared(TypeUserStackFrame64, "USER_STACKFRAME64", user, stackFrame64),
		declared(TypeKernStackLR, "KERN_STACKLR", kernel, stackLR32),
		declared(TypeKernStackLR64, "KERN_STACKLR64", kernel, stackLR64),
		declared(TypeUserStackLR, "USER_STACKLR", user, stackLR32),
		declared(TypeUserStackLR64, "USER_STACKLR64", user, stackLR64),
		plainSpec(0x932, "USER_ASYNC_START_INDEX", "user_async_start_index", KindUint32),
		declared(0x933, "USER_ASYNC_STACKLR64", async, stackLR64),
		declared(0x924, "USER_STACKTOP", "user_stacktop", `uint64_t sp; uint8_t stack_contents[8]`),
		structSpec(TypeCPUTimes, "CPU_TIMES", "cpu_times", CPUTimes{}, 16),
		declared(0x923, "INSTRS_CYCLES", "instrs_cycles_snapshot", instrsCycles, 16),
		plainSpec(0x91f, "THREAD_GROUP", "thread_group", KindUint64),
		structSpec(TypeThreadWaitinfo, "THREAD_WAITINFO", "thread_waitinfo", ThreadWaitinfo{}, 25),
		declared(0x929, "THREAD_TURNSTILEINFO", "thread_turnstileinfo", turnstileinfo, 26),
	}
}
