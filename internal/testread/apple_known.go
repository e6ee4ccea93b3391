package testread

// field is one field of a record, as a definition has it.
type field struct {
	name   string
	elem   uint8 // 1 char, 2 s8, 3 u8, 4 s16, 5 u16, 6 s32, 7 u32, 8 s64, 9 u64
	offset int
	size   int // of one element
	count  int // of an array; -1: a scalar
}

func (f field) end() int { return f.offset + f.size*max(f.count, 1) }

// record is what the decoder knows of one id.
type record struct {
	name   string
	fields []field
	text   int  // a predefined text of at most so many bytes, of which it shows what there is
	number int  // a predefined bare number of so many bytes
	apple  bool // predefined
	inFile []byte
}

func (r *record) end() int {
	end := 0
	for _, f := range r.fields {
		end = max(end, f.end())
	}
	return end
}

// packed are fields one behind the other: names of u64, with ":4", ":2", ":1" u32, u16
// or u8, a "-" before which it is signed, and "*n" for n of them, chars if of one byte.
type packed []string

// known are the ids that the decoder has built in and our files may hold: names,
// fields and sizes are facts of the format.
func known() map[uint32]*record {
	text := func(name string, most int) *record { return &record{name: name, text: most} }
	number := func(name string, size int) *record { return &record{name: name, number: size} }
	all := map[uint32]*record{
		0x32:  {name: "mach_timebase_info", fields: packed{"numer:4", "denom:4"}.fields()},
		0x33:  number("mach_absolute_time", 8),
		0x35:  number("usecs_since_epoch", 8),
		0x80f: text("p_path", 1024),
		0x903: {name: "task_snapshots"},
		0x904: {name: "thread_snapshots"},
		0x931: {name: "transitioning_task_snapshots"},
		0x905: {name: "task_snapshot", fields: packed{
			"ts_unique_pid", "ts_ss_flags", "ts_user_time_in_terminated_thre", "ts_system_time_in_terminated_th", "ts_p_start_sec",
			"ts_task_size", "ts_max_resident_size", "ts_suspend_count:4", "ts_faults:4", "ts_pageins:4", "ts_cow_faults:4",
			"ts_was_throttled:4", "ts_did_throttle:4", "ts_latency_qos:4", "ts_pid:-4", "ts_p_comm:1*32"}.fields()},
		0x906: {name: "thread_snapshot", fields: packed{
			"ths_thread_id", "ths_wait_event", "ths_continuation", "ths_total_syscalls", "ths_voucher_identifier", "ths_dqserialnum",
			"ths_user_time", "ths_sys_time", "ths_ss_flags", "ths_last_run_time", "ths_last_made_runnable_time", "ths_state:4",
			"ths_sched_flags:4", "ths_base_priority:-2", "ths_sched_priority:-2", "ths_eqos:1", "ths_rqos:1", "ths_rqos_override:1",
			"ths_io_tier:1", "ths_thread_t", "ths_requested_policy", "ths_effective_policy"}.fields()},
		0x909: text("pth_name", 64),
		0x90e: text("boot_args", 256),
		0x90f: text("osversion", 256),
		0x910: number("kernel_page_size", 4),
		0x914: {name: "kernel_stack_frames", fields: packed{"lr"}.fields()},
		0x916: {name: "user_stack_frames", fields: packed{"lr"}.fields()},
		0x919: {name: "cpu_times", fields: packed{"user_usec", "system_usec", "runnable_usec"}.fields()},
		0x91a: {name: "stackshot_duration", fields: packed{"stackshot_duration", "stackshot_duration_outer", "stackshot_duration_prior"}.fields()},
		0x91d: {name: "thread_waitinfo", fields: packed{"owner", "waiter", "context", "wait_type:1", "portlabel_id:-2", "wait_flags:4"}.fields()},
		0x92b: {name: "stackshot_latency_collection"}, // it has a layout of its own for version 2
		0x92c: {name: "stackshot_latency_task", fields: packed{
			"task_uniqueid", "setup_latency", "task_thread_count_loop_latency", "task_thread_data_loop_latency", "cur_tsnap_latency",
			"pmap_latency", "bsd_proc_ids_latency", "misc_latency", "misc2_latency", "end_latency"}.fields()},
		0x92d: {name: "stackshot_latency_thread", fields: packed{
			"thread_id", "cur_thsnap1_latency", "dispatch_serial_latency", "dispatch_label_latency", "cur_thsnap2_latency",
			"thread_name_latency", "sur_times_latency", "user_stack_latency", "kernel_stack_latency", "misc_latency"}.fields()},
		0x930: {name: "transitioning_task_snapshot", fields: packed{
			"tts_unique_pid", "tts_ss_flags", "tts_transition_type", "tts_pid:-4", "tts_p_comm:1*32"}.fields()},
		0x956: {name: "stackshot_latency_cpu", fields: packed{
			"cpu_number:-4", "cluster_type:-4", "init_latency_mt", "workqueue_latency_mt", "total_latency_mt", "total_cycles", "total_instrs",
			"tasks_processed", "threads_processed", "faulting_time_mt", "total_buf", "intercluster_buf_used"}.fields()},
	}
	for _, r := range all {
		r.apple = true
	}
	return all
}

func (p packed) fields() (out []field) {
	off := 0
	for _, s := range p {
		f := parseField(s)
		f.offset = off
		out = append(out, f)
		off = f.end()
	}
	return out
}
