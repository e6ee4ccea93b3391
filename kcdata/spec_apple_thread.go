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

// ThreadWaitinfo is one edge from a waiting thread to an owner (version 2, 31
// bytes, unaligned fields).
type ThreadWaitinfo struct {
	Owner       uint64 `kc:"owner"`
	Waiter      uint64 `kc:"waiter"`
	Context     uint64 `kc:"context"`
	WaitType    uint8  `kc:"wait_type"`
	PortLabelID int16  `kc:"portlabel_id"` // since version 2
	WaitFlags   uint32 `kc:"wait_flags"`
}

type turnstileinfo struct {
	Waiter      uint64 `kc:"waiter"`
	Context     uint64 `kc:"turnstile_context"`
	Priority    uint8  `kc:"turnstile_priority"`
	Hops        uint8  `kc:"number_of_hops"`
	Flags       uint64 `kc:"turnstile_flags"`
	PortLabelID int16  `kc:"portlabel_id"`
}

type threadDeltaSnapshot struct {
	ThreadID             uint64 `kc:"tds_thread_id"`
	VoucherIdentifier    uint64 `kc:"tds_voucher_identifier"`
	SSFlags              uint64 `kc:"tds_ss_flags"`
	LastMadeRunnableTime uint64 `kc:"tds_last_made_runnable_time"`
	State                uint32 `kc:"tds_state"`
	SchedFlags           uint32 `kc:"tds_sched_flags"`
	BasePriority         int16  `kc:"tds_base_priority"`
	SchedPriority        int16  `kc:"tds_sched_priority"`
	EQoS                 uint8  `kc:"tds_eqos"`
	RQoS                 uint8  `kc:"tds_rqos"`
	RQoSOverride         uint8  `kc:"tds_rqos_override"`
	IOTier               uint8  `kc:"tds_io_tier"`
	RequestedPolicy      uint64 `kc:"tds_requested_policy"`
	EffectivePolicy      uint64 `kc:"tds_effective_policy"`
}

type stackFrame32 struct {
	LR uint32 `kc:"lr"`
	SP uint32 `kc:"sp"`
}

type stackFrame64 struct {
	LR uint64 `kc:"lr"`
	SP uint64 `kc:"sp"`
}

type stackLR32 struct {
	LR uint32 `kc:"lr"`
}

type stackLR64 struct {
	LR uint64 `kc:"lr"`
}

type stackTop struct {
	SP       uint64  `kc:"sp"`
	Contents [8]byte `kc:"stack_contents"`
}

type instrsCycles struct {
	Instructions  uint64 `kc:"ics_instructions"`
	Cycles        uint64 `kc:"ics_cycles"`
	PInstructions uint64 `kc:"ics_p_instructions"`
	PCycles       uint64 `kc:"ics_p_cycles"`
}

func threadSpecs() []Spec {
	const kernel, user, async = "kernel_stack_frames", "user_stack_frames", "user_async_stack_frames"
	return []Spec{
		plainSpec(TypeThread, "THREAD", "thread_snapshots", KindContainer),
		structSpec(TypeThreadSnapshot, "THREAD_SNAPSHOT", "thread_snapshot", ThreadSnapshot{}, 104, 112),
		structSpec(TypeThreadDeltaSnapshot, "THREAD_DELTA_SNAPSHOT", "thread_delta_snapshot", threadDeltaSnapshot{}, 48),
		plainSpec(TypeThreadName, "THREAD_NAME", "pth_name", KindString),
		plainSpec(TypeDispatchQueueLabel, "THREAD_DISPATCH_QUEUE_LABEL", "dispatch_queue_label", KindString),
		structSpec(TypeKernStackFrame, "KERN_STACKFRAME", kernel, stackFrame32{}),
		structSpec(TypeKernStackFrame64, "KERN_STACKFRAME64", kernel, stackFrame64{}),
		structSpec(TypeUserStackFrame, "USER_STACKFRAME", user, stackFrame32{}),
		structSpec(TypeUserStackFrame64, "USER_STACKFRAME64", user, stackFrame64{}),
		structSpec(TypeKernStackLR, "KERN_STACKLR", kernel, stackLR32{}),
		structSpec(TypeKernStackLR64, "KERN_STACKLR64", kernel, stackLR64{}),
		structSpec(TypeUserStackLR, "USER_STACKLR", user, stackLR32{}),
		structSpec(TypeUserStackLR64, "USER_STACKLR64", user, stackLR64{}),
		plainSpec(TypeUserAsyncStartIndex, "USER_ASYNC_START_INDEX", "user_async_start_index", KindUint32),
		structSpec(TypeUserAsyncStackLR64, "USER_ASYNC_STACKLR64", async, stackLR64{}),
		structSpec(TypeUserStacktop, "USER_STACKTOP", "user_stacktop", stackTop{}),
		structSpec(TypeCPUTimes, "CPU_TIMES", "cpu_times", CPUTimes{}, 16),
		structSpec(TypeInstrsCycles, "INSTRS_CYCLES", "instrs_cycles_snapshot", instrsCycles{}, 16),
		plainSpec(TypeThreadGroup, "THREAD_GROUP", "thread_group", KindUint64),
		structSpec(TypeThreadWaitinfo, "THREAD_WAITINFO", "thread_waitinfo", ThreadWaitinfo{}, 25),
		structSpec(TypeThreadTurnstileinfo, "THREAD_TURNSTILEINFO", "thread_turnstileinfo", turnstileinfo{}, 26),
	}
}
