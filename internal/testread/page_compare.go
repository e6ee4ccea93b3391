package testread

import (
	"fmt"
	"strings"

	"stackshot/kcdata"
)

func (p *page) snapshot(s *kcdata.Snapshot) {
	for key, want := range map[string]any{
		"linux_machine": &s.Machine, "linux_capture": &s.Capture, "mach_timebase_info": s.Timebase, "stackshot_duration": s.Duration,
		"stackshot_latency_collection": s.Latency, "linux_atomicity": s.Atomicity, "linux_user_taken": s.UserTaken,
		"linux_wait_taken": s.WaitTaken, "linux_files_taken": s.FilesTaken, "linux_cgroups_taken": s.CgroupsTaken,
	} {
		p.record(key, want)
	}
	for key, want := range map[string]any{
		"linux_cpu": s.CPUs, "stackshot_latency_cpu": s.LatencyCPUs, "linux_ran": s.Ran, "linux_phases": s.Phases, "linux_arena": s.Arenas,
		"linux_try": s.Tries, "linux_trace": s.Trace, "linux_left_out": s.LeftOut, "linux_end": s.Ends, "linux_file_lock": s.FileLocks,
		"linux_mount": s.Mounts, "linux_device": s.Devices, "linux_fuse": s.FUSE,
	} {
		p.array(key, want)
	}
	for key, want := range map[string]string{
		"linux_hostname": s.Hostname, "linux_release": s.Release, "linux_arch": s.Arch, "linux_boot_id": s.BootID,
		"linux_engine": s.Engine, "linux_isolation": s.Isolation, "linux_request": s.Request, "linux_tool_version": s.ToolVersion,
		"linux_loadavg": s.Loadavg, "linux_meminfo": s.Meminfo, "linux_pressure": s.Pressure, "osversion": s.Version, "boot_args": s.BootArgs,
	} {
		p.texts(key, want)
	}
	var warnings []string
	for _, w := range s.Warnings {
		warnings = append(warnings, strings.TrimPrefix(w.Code+": "+w.Text, ": "))
	}
	p.texts("linux_warning", warnings...)
	p.same("linux_kernel_build", p.raw("linux_kernel_build"), s.KernelBuild)
	p.number("kernel_page_size", s.PageSize)
	p.number("mach_absolute_time", s.Machine.MonotonicNs)
	p.number("usecs_since_epoch", s.Machine.RealtimeNs/1000)
	p.same("stackshot_tasks_count", p.take("stackshot_tasks_count"), len(s.Tasks))
	threads := 0
	for _, t := range s.Tasks {
		threads += len(t.Threads)
	}
	p.same("stackshot_threads_count", p.take("stackshot_threads_count"), threads)
	p.same("stackshot_tries", p.take("stackshot_tries"), s.Capture.Tries)
	p.same("stackshot_buf_overhead", p.take("stackshot_buf_overhead"), s.Capture.Overhead)
	p.same("stackshot_size_estimate", p.take("stackshot_size_estimate"), s.Capture.BufferSize)
	p.same("stackshot_size_estimate_adj", p.take("stackshot_size_estimate_adj"), 25)
	p.same("stackshot_in_flags", p.take("stackshot_in_flags"), 0x10000)
	p.same("stackshot_out_flags", p.take("stackshot_out_flags"), 0x10000)
	p.same("system_state_flags", p.take("system_state_flags"), 2)
	p.take("stackshot_in_pid") // no field of ours
	p.kernelNames(s)
	p.cgroups(s)
	p.inside(len(s.Tasks), func(i int, in *page) { in.task(s.Tasks[i]) })
	p.same("what it is", fmt.Sprint(p.take("id"), "/", p.take("type")), "0/0")
	p.rest()
}

func (p *page) number(key string, want any) {
	m, _ := p.take(key).(map[string]any)
	p.same(key, m["value"], want)
}

// kernelNames are symbols and modules, over their string table.
func (p *page) kernelNames(s *kcdata.Snapshot) {
	p.take("linux_strings")
	symbols, _ := p.take("linux_symbol").([]any)
	for _, x := range symbols {
		m := x.(map[string]any)
		sym, _ := s.Symbols.Name(uint64Of(m["addr"]))
		p.same("symbol", fmt.Sprintln(textOf(m["name_text"]), textOf(m["module_text"]), m["size"], m["offset"]), fmt.Sprintln(sym.Name, sym.Module, sym.Size, sym.Offset))
	}
	modules, _ := p.take("linux_module").([]any)
	p.same("modules", len(modules), len(s.Modules))
	for i, x := range modules {
		m, ours := x.(map[string]any), s.Modules[min(i, len(s.Modules)-1)]
		p.same("module", fmt.Sprintln(textOf(m["name_text"]), m["addr"], m["size"], m["build_id_len"]), fmt.Sprintln(ours.Name, ours.Addr, ours.Size, len(ours.BuildID)))
	}
}

// cgroups are the control groups, with their paths.
func (p *page) cgroups(s *kcdata.Snapshot) {
	var records []kcdata.LinuxCgroup
	list, _ := p.items["linux_cgroup"].([]any)
	for i, g := range s.Cgroups {
		records = append(records, g.LinuxCgroup)
		if i < len(list) {
			p.same("path of a control group", textOf(list[i].(map[string]any)["path_text"]), g.Path)
		}
	}
	p.array("linux_cgroup", records)
}

func (p *page) task(t *kcdata.Task) {
	typ := kcdata.TypeTask
	if t.Transitioning {
		typ = kcdata.TypeTransitioningTask
	} else {
		p.record("task_snapshot", &t.Snapshot)
	}
	p.same("what it is", fmt.Sprint(p.take("id"), "/", p.take("type")), fmt.Sprint(t.ID, "/", uint32(typ)))
	for key, want := range map[string]any{
		"transitioning_task_snapshot": t.Exiting, "linux_task": &t.Linux, "linux_task_memory": t.Memory, "linux_task_ns": t.NS,
		"linux_task_exe": t.Exe, "stackshot_latency_task": t.Latency, "linux_map_walk": t.MapWalk,
	} {
		p.record(key, want)
	}
	p.array("thread_waitinfo", t.WaitInfo)
	p.texts("linux_cgroup_path", t.Cgroup)
	p.texts("linux_memory_cgroup", t.MemoryCgroup)
	p.texts("linux_perf_map", t.PerfMap)
	p.texts("linux_enrich_failed", t.EnrichFailed...)
	path := "p_path" // or, where that is long or the file old, as our own record
	if _, ours := p.items["linux_exe_path"]; ours {
		path = "linux_exe_path"
	}
	p.texts(path, t.ExePath)
	command, seen := p.raw("linux_cmdline"), p.raw("linux_cmdline_seen")
	if command == nil {
		command = seen
	}
	if command != nil {
		p.same("command line", fmt.Sprintf("%q", strings.Split(strings.TrimSuffix(string(command), "\x00"), "\x00")), fmt.Sprintf("%q", t.Cmdline))
	}
	p.mappings(t)
	p.take("linux_map_name") // compared with the mappings
	p.take("linux_map_strings")
	p.userNames(t)
	p.inside(len(t.Threads), func(i int, in *page) { in.thread(t.Threads[i]) })
	p.rest()
}

func (p *page) mappings(t *kcdata.Task) {
	var records []kcdata.LinuxMapping
	list, _ := p.items["linux_mapping"].([]any)
	for i, m := range t.Mappings {
		records = append(records, m.LinuxMapping)
		if i < len(list) {
			p.same("path", textOf(list[i].(map[string]any)["path_text"]), m.Path)
		}
	}
	p.array("linux_mapping", records)
}

// userNames are the names of the task's user stacks: of one place one behind the other.
func (p *page) userNames(t *kcdata.Task) {
	list, _ := p.take("linux_user_symbol").([]any)
	at := map[kcdata.UserPlace]int{}
	for _, x := range list {
		m := x.(map[string]any)
		place := kcdata.UserPlace{Addr: uint64Of(m["addr"]), Exact: fmt.Sprint(m["flags"]) == "1"}
		functions := t.UserSymbols.Functions(place)
		if at[place] >= len(functions) {
			p.fault("%+v has %d functions", place, len(functions))
			return
		}
		f := functions[at[place]]
		at[place]++
		p.same("function", fmt.Sprintln(textOf(m["name_text"]), textOf(m["module_text"]), textOf(m["file_text"]), m["line"], m["offset"]),
			fmt.Sprintln(f.Name, f.Module, f.File, f.Line, f.Offset))
	}
}

func (p *page) thread(t *kcdata.Thread) {
	p.same("what it is", fmt.Sprint(p.take("id"), "/", p.take("type")), fmt.Sprint(t.ID, "/", uint32(kcdata.TypeThread)))
	for key, want := range map[string]any{
		"thread_snapshot": &t.Snapshot, "cpu_times": t.Times, "linux_thread": &t.Linux, "linux_syscall": t.Syscall, "linux_thread_io": t.IO,
		"linux_delays": t.Delays, "linux_signals": t.Signals, "linux_sample": t.Sample, "stackshot_latency_thread": t.Latency, "linux_user_walk": t.UserWalk, "linux_wait": t.Wait,
	} {
		p.record(key, want)
	}
	for key, want := range map[string]any{
		"kernel_stack_frames": t.Kernel, "user_stack_frames": t.User, "linux_registers": t.Registers, "linux_thread_ns": t.NS, "linux_user_chain": t.UserChain, "linux_futex": t.Futexes, "linux_file": t.Files, "linux_socket": t.Sockets,
	} {
		p.array(key, want)
	}
	p.texts("pth_name", t.Name)
	p.texts("linux_wchan", t.Wchan)
	p.same("linux_user_how", p.raw("linux_user_how"), t.UserHow)
	var pieces []byte
	for _, u := range t.UserBytes {
		pieces = u.Append(pieces)
	}
	p.same("linux_user_bytes", p.raw("linux_user_bytes"), pieces)
	p.inside(0, nil)
	p.rest()
}

func textOf(v any) string {
	s, _ := v.(string)
	return s
}

func uint64Of(v any) (n uint64) {
	fmt.Sscan(fmt.Sprint(v), &n)
	return n
}
