package kcdata

// LatencyCollection is the latency of the whole capture (version 2, 96 bytes);
// latencies in ticks. Version 1 had other names, see latencyCollection1.
type LatencyCollection struct {
	Version                   uint64 `kc:"latency_version"`
	SetupMt                   uint64 `kc:"setup_latency_mt"`
	TaskIterationMt           uint64 `kc:"total_task_iteration_latency_mt"`
	TerminatedTaskIterationMt uint64 `kc:"total_terminated_task_iteration_latency_mt"`
	TaskQueueBuildingMt       uint64 `kc:"task_queue_building_latency_mt"`
	TerminatedQueueBuildingMt uint64 `kc:"terminated_task_queue_building_latency_mt"`
	CPUWaitMt                 uint64 `kc:"cpu_wait_latency_mt"`
	MainCPU                   int32  `kc:"main_cpu_number"`
	CallingCPU                int32  `kc:"calling_cpu_number"`
	BufferSize                uint64 `kc:"buffer_size"`
	BufferUsed                uint64 `kc:"buffer_used"`
	BufferOverhead            uint64 `kc:"buffer_overhead"`
	BufferCount               uint64 `kc:"buffer_count"`
}

const latencyCollection1 = `
	uint64_t latency_version, setup_latency, total_task_iteration_latency,
		total_terminated_task_iteration_latency;`

// LatencyCPU is the share of one CPU in the capture (88 bytes); latencies in ticks.
type LatencyCPU struct {
	CPU                 int32  `kc:"cpu_number"`
	ClusterType         int32  `kc:"cluster_type"`
	InitMt              uint64 `kc:"init_latency_mt"`
	WorkqueueMt         uint64 `kc:"workqueue_latency_mt"` // waited on an empty queue
	TotalMt             uint64 `kc:"total_latency_mt"`
	TotalCycles         uint64 `kc:"total_cycles"`
	TotalInstrs         uint64 `kc:"total_instrs"`
	TasksProcessed      uint64 `kc:"tasks_processed"`
	ThreadsProcessed    uint64 `kc:"threads_processed"`
	FaultingTimeMt      uint64 `kc:"faulting_time_mt"`
	TotalBuf            uint64 `kc:"total_buf"`
	InterclusterBufUsed uint64 `kc:"intercluster_buf_used"` // bytes from other clusters' arenas
}

// LatencyTask is where the time for one task went (80 bytes), in ticks.
type LatencyTask struct {
	TaskUniqueID    uint64 `kc:"task_uniqueid"`
	Setup           uint64 `kc:"setup_latency"`
	ThreadCountLoop uint64 `kc:"task_thread_count_loop_latency"`
	ThreadDataLoop  uint64 `kc:"task_thread_data_loop_latency"`
	CurTsnap        uint64 `kc:"cur_tsnap_latency"`
	Pmap            uint64 `kc:"pmap_latency"`
	BSDProcIDs      uint64 `kc:"bsd_proc_ids_latency"`
	Misc            uint64 `kc:"misc_latency"`
	Misc2           uint64 `kc:"misc2_latency"`
	End             uint64 `kc:"end_latency"`
}

// LatencyThread is where the time for one thread went (80 bytes), in ticks.
type LatencyThread struct {
	ThreadID       uint64 `kc:"thread_id"`
	CurThsnap1     uint64 `kc:"cur_thsnap1_latency"`
	DispatchSerial uint64 `kc:"dispatch_serial_latency"`
	DispatchLabel  uint64 `kc:"dispatch_label_latency"`
	CurThsnap2     uint64 `kc:"cur_thsnap2_latency"`
	ThreadName     uint64 `kc:"thread_name_latency"`
	SurTimes       uint64 `kc:"sur_times_latency"`
	UserStack      uint64 `kc:"user_stack_latency"`
	KernelStack    uint64 `kc:"kernel_stack_latency"`
	Misc           uint64 `kc:"misc_latency"`
}

func latencySpecs() []Spec {
	info := structSpec(TypeLatencyInfo, "LATENCY_INFO", "stackshot_latency_collection", LatencyCollection{}, 32)
	info.old, info.oldSize = fieldsIn(latencyCollection1), 32
	return []Spec{
		info,
		structSpec(TypeLatencyInfoTask, "LATENCY_INFO_TASK", "stackshot_latency_task", LatencyTask{}),
		structSpec(TypeLatencyInfoThread, "LATENCY_INFO_THREAD", "stackshot_latency_thread", LatencyThread{}),
		structSpec(TypeLatencyInfoCPU, "LATENCY_INFO_CPU", "stackshot_latency_cpu", LatencyCPU{}),
	}
}
