package report

import (
	"stackshot/internal/account"
	"stackshot/internal/model"
	"stackshot/internal/show"
	"stackshot/internal/sysno"
	"stackshot/internal/verdict"
	"stackshot/kcdata"
)

// abiNames are the values of the key "abi" of a system call.
var abiNames = [...]string{sysno.Native: "", sysno.Compat: "compat", sysno.Unknown: "unknown"}

// jsonTask is the object of a task. Its threads and mappings are made while they are written.
func (v *view) jsonTask(j *jsonWriter, t *taskView) show.Object {
	l, p := &t.Linux, t.Linux.Present
	var exeName *string
	if t.Exe != nil {
		exeName = cleaned(t.Exe.FileName())
	}
	var mappings show.Items // none without user stacks
	if len(t.Mappings) > 0 {
		mappings = fitting(j, t.Mappings, jsonMapping, func(kcdata.Mapping) { j.Mappings++ })
	}
	return show.Object{
		{"id", addr(t.ID)}, {"pid", show.Number(t.ID)}, {"name", show.Clean(t.Name)}, {"kernel", t.IsKernel()},
		{"exiting", t.Transitioning}, {"self", t.IsSelf()},
		{"in_exec", p&kcdata.TaskInExec != 0}, {"core_dumping", p&kcdata.TaskCoreDumping != 0},
		{"ppid", show.Present(p, kcdata.TaskHasIDs, l.Ppid)}, {"pgid", show.Present(p, kcdata.TaskHasIDs, l.Pgid)},
		{"sid", show.Present(p, kcdata.TaskHasIDs, l.Sid)},
		{"uid", show.Present(p, kcdata.TaskHasIDs, l.UID)}, {"gid", show.Present(p, kcdata.TaskHasIDs, l.GID)},
		{"euid", show.Present(p, kcdata.TaskHasIDs, l.EUID)}, {"egid", show.Present(p, kcdata.TaskHasIDs, l.EGID)},
		{"start_boottime_ns", show.Present(p, kcdata.TaskHasTimes, l.StartBoottime)},
		{"exit_code", show.Present(p, kcdata.TaskHasSignal, l.ExitCode)},
		{"oom_score_adj", show.Present(p, kcdata.TaskHasOOM, l.OOMScoreAdj)},
		{"cgroup_id", show.Present(p, kcdata.TaskHasCgroup, addr(l.CgroupID))}, {"cgroup", cleaned(t.Cgroup)},
		{"memory_cgroup", cleaned(t.MemoryCgroup)},
		{"exe", cleaned(t.ExePath)}, {"exe_name", exeName},
		{"cmdline", some(cleanAll(t.Cmdline))}, {"not_read", some(cleanAll(t.EnrichFailed))},
		{"memory", show.Optional(t.Memory, jsonMemory)}, {"perf_map", cleaned(t.PerfMap)},
		{"threads", fitting(j, t.threadViews(), v.jsonThread, func(*threadView) { j.Threads++ })}, {"mappings", mappings},
	}
}

func jsonMemory(m *kcdata.LinuxTaskMemory) show.Object {
	return show.Object{
		{"rss_file", m.RssFile}, {"rss_anon", m.RssAnon}, {"rss_shmem", m.RssShmem}, {"swap", m.Swap},
		{"total_vm", m.TotalVM}, {"locked_vm", m.LockedVM},
	}
}

// some is nil for an empty list: JSON then has no key for it.
func some[T any](list []T) []T {
	if len(list) == 0 {
		return nil
	}
	return list
}

func (v *view) jsonThread(t *threadView) show.Object {
	l, p := &t.Linux, t.Linux.Present
	var read uint64 // 1: the fields of l without a presence bit of their own were read
	if t.HasLinux {
		read = 1
	}
	atMost, about := t.age.Bounds()
	user, unnamed := v.jsonUserStack(t)
	return show.Object{
		{"id", addr(t.ID)}, {"tid", show.Number(t.ID)}, {"name", cleaned(t.Name)},
		{"class", t.state.Class.String()}, {"state", t.state.Words},
		{"state_bits", show.Present(read, 1, addr(uint64(l.State)|uint64(l.ExitState)))},
		{"self", t.IsSelf()}, {"panicked", show.Known(account.PanickedHere(v.s, t.Thread))}, {"age_at_most_ns", atMost}, {"age_about_ns", about},
		{"cpu", show.Present(read, 1, l.CPU)}, {"on_cpu", show.Present(p, kcdata.ThreadHasOnCPU, l.OnCPU != 0)},
		{"displaced_ns", show.Present(p, kcdata.ThreadDisplaced, l.DisplacedNs)}, {"sample", show.Optional(t.Sample, jsonSample)},
		{"policy", show.Present(read, 1, l.Policy)}, {"prio", show.Present(read, 1, l.Prio)}, {"nice", show.Present(read, 1, l.Nice)},
		{"utime_ns", show.Present(p, kcdata.ThreadHasTimes, l.Utime)}, {"stime_ns", show.Present(p, kcdata.ThreadHasTimes, l.Stime)},
		{"runtime_ns", show.Present(p, kcdata.ThreadHasRuntime, l.SumExecRuntime)},
		{"run_delay_ns", show.Present(p, kcdata.ThreadHasRuntime, l.RunDelay)},
		{"times_run", show.Present(p, kcdata.ThreadHasRuntime, l.Pcount)},
		{"nvcsw", show.Present(p, kcdata.ThreadHasSwitches, l.Nvcsw)}, {"nivcsw", show.Present(p, kcdata.ThreadHasSwitches, l.Nivcsw)},
		{"min_flt", show.Present(p, kcdata.ThreadHasFaults, l.MinFlt)}, {"maj_flt", show.Present(p, kcdata.ThreadHasFaults, l.MajFlt)},
		{"syscall", v.jsonSyscall(t)}, {"wait", verdict.WaitJSON(v.wait(t))}, {"files", jsonFiles(t.Thread)}, {"io", show.Optional(t.IO, jsonIO)},
		{"ns_tids", account.NSTidsJSON(t.Thread)},
		{"wchan", cleaned(t.Wchan)}, {"stack_note", show.Known(t.note)},
		{"kernel_stack_truncated", p&kcdata.ThreadTruncated != 0}, {"kernel_frames_skipped", show.Known(l.KstackSkipped)},
		{"kernel_stack", v.jsonFrames(t.Kernel)}, {"user_stack", user}, {"frames_unnamed", show.Known(unnamed)},
		{"user_notes", some(t.notes)}, {"user_walk", show.Optional(t.UserWalk, jsonWalk)},
	}
}

// jsonSample says that the thread's CPU, which was not stopped, took the stacks itself.
func jsonSample(s *kcdata.LinuxSample) show.Object {
	return show.Object{{"cpu", s.CPU}, {"user_mode", s.User != 0}, {"ip", addr(s.IP)}, {"delay_ns", s.DelayNs}}
}

func (v *view) jsonSyscall(t *threadView) show.Object {
	s := t.Syscall
	if s == nil {
		return nil
	}
	abi := model.CallABI(t.Thread)
	name, _ := sysno.Name(v.s.Arch, abi, s.Nr)
	var args [len(s.Args)]addr
	for i, a := range s.Args {
		args[i] = addr(a)
	}
	return show.Object{
		{"nr", s.Nr}, {"name", show.Known(name)}, {"abi", show.Known(abiNames[abi])}, {"ip", addr(s.IP)}, {"sp", addr(s.SP)}, {"args", args},
	}
}

func jsonIO(io *kcdata.LinuxThreadIO) show.Object {
	return show.Object{
		{"rchar", io.Rchar}, {"wchar", io.Wchar}, {"syscr", io.Syscr}, {"syscw", io.Syscw},
		{"read_bytes", io.ReadBytes}, {"write_bytes", io.WriteBytes},
	}
}

func (v *view) jsonFrames(addrs []uint64) []jsonFrame {
	out := make([]jsonFrame, len(addrs))
	for i, a := range addrs {
		out[i].Addr = addr(a)
		if sym, ok := v.s.Symbols.Name(a); ok {
			off := sym.Offset
			out[i].Symbol, out[i].Offset, out[i].Module = show.Clean(sym.Name), &off, show.Clean(sym.Module)
		}
	}
	return out
}
