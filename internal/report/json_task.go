package report

import (
	"stackshot/internal/show"
	"stackshot/internal/sysno"
	"stackshot/kcdata"
)

type jsonTask struct {
	ID          addr         `json:"id"`
	Pid         *uint32      `json:"pid,omitempty"`
	Name        string       `json:"name"`
	Kernel      bool         `json:"kernel"`
	Exiting     bool         `json:"exiting"`
	Self        bool         `json:"self"`
	InExec      bool         `json:"in_exec"`
	CoreDumping bool         `json:"core_dumping"`
	Ppid        *uint32      `json:"ppid,omitempty"`
	Pgid        *uint32      `json:"pgid,omitempty"`
	Sid         *uint32      `json:"sid,omitempty"`
	UID         *uint32      `json:"uid,omitempty"`
	GID         *uint32      `json:"gid,omitempty"`
	EUID        *uint32      `json:"euid,omitempty"`
	EGID        *uint32      `json:"egid,omitempty"`
	StartNs     *uint64      `json:"start_boottime_ns,omitempty"`
	ExitCode    *int32       `json:"exit_code,omitempty"`
	OOMScoreAdj *int32       `json:"oom_score_adj,omitempty"`
	CgroupID    *addr        `json:"cgroup_id,omitempty"`
	Cgroup      string       `json:"cgroup,omitempty"`
	ExePath     string       `json:"exe,omitempty"`
	ExeName     string       `json:"exe_name,omitempty"`
	Cmdline     []string     `json:"cmdline,omitempty"`
	NotRead     []string     `json:"not_read,omitempty"`
	Memory      *jsonMemory  `json:"memory,omitempty"`
	PerfMap     string       `json:"perf_map,omitempty"`
	Threads     []jsonThread `json:"threads"`
}

type jsonMemory struct {
	RssFile  uint64 `json:"rss_file"`
	RssAnon  uint64 `json:"rss_anon"`
	RssShmem uint64 `json:"rss_shmem"`
	Swap     uint64 `json:"swap"`
	TotalVM  uint64 `json:"total_vm"`
	LockedVM uint64 `json:"locked_vm"`
}

type jsonThread struct {
	ID         addr         `json:"id"`
	Tid        *uint32      `json:"tid,omitempty"`
	Name       string       `json:"name,omitempty"`
	Class      string       `json:"class"`
	State      string       `json:"state"`
	StateBits  *addr        `json:"state_bits,omitempty"`
	Self       bool         `json:"self"`
	AgeNs      *uint64      `json:"age_at_most_ns,omitempty"`
	AboutNs    *uint64      `json:"age_about_ns,omitempty"`
	CPU        *uint32      `json:"cpu,omitempty"`
	OnCPU      *bool        `json:"on_cpu,omitempty"`
	Displaced  *uint64      `json:"displaced_ns,omitempty"`
	Sample     *jsonSample  `json:"sample,omitempty"`
	Policy     *uint32      `json:"policy,omitempty"`
	Prio       *int32       `json:"prio,omitempty"`
	Nice       *int32       `json:"nice,omitempty"`
	UtimeNs    *uint64      `json:"utime_ns,omitempty"`
	StimeNs    *uint64      `json:"stime_ns,omitempty"`
	RuntimeNs  *uint64      `json:"runtime_ns,omitempty"`
	RunDelayNs *uint64      `json:"run_delay_ns,omitempty"`
	TimesRun   *uint64      `json:"times_run,omitempty"`
	Nvcsw      *uint64      `json:"nvcsw,omitempty"`
	Nivcsw     *uint64      `json:"nivcsw,omitempty"`
	MinFlt     *uint64      `json:"min_flt,omitempty"`
	MajFlt     *uint64      `json:"maj_flt,omitempty"`
	Syscall    *jsonSyscall `json:"syscall,omitempty"`
	IO         *jsonIO      `json:"io,omitempty"`
	NS         []jsonNS     `json:"ns_tids,omitempty"`
	Wchan      string       `json:"wchan,omitempty"`
	StackNote  string       `json:"stack_note,omitempty"`
	Truncated  bool         `json:"kernel_stack_truncated"`
	Skipped    uint32       `json:"kernel_frames_skipped,omitempty"`
	Kernel     []jsonFrame  `json:"kernel_stack"`
	User       []jsonUser   `json:"user_stack,omitempty"`
	Unnamed    int          `json:"frames_unnamed,omitempty"`
	UserNotes  []string     `json:"user_notes,omitempty"`
	UserWalk   *jsonWalk    `json:"user_walk,omitempty"`
}

// jsonSample: the thread's own CPU, which was not stopped, took its stacks.
type jsonSample struct {
	CPU     uint32 `json:"cpu"`
	User    bool   `json:"user_mode"`
	IP      addr   `json:"ip"`
	DelayNs uint64 `json:"delay_ns"`
}

type jsonSyscall struct {
	Nr   int64   `json:"nr"`
	Name string  `json:"name,omitempty"`
	ABI  string  `json:"abi,omitempty"`
	IP   addr    `json:"ip"`
	SP   addr    `json:"sp"`
	Args [6]addr `json:"args"`
}

type jsonIO struct {
	Rchar      uint64 `json:"rchar"`
	Wchar      uint64 `json:"wchar"`
	Syscr      uint64 `json:"syscr"`
	Syscw      uint64 `json:"syscw"`
	ReadBytes  uint64 `json:"read_bytes"`
	WriteBytes uint64 `json:"write_bytes"`
}

type jsonNS struct {
	Inode uint32 `json:"inode"`
	Tid   uint32 `json:"tid"`
}

type jsonFrame struct {
	Addr   addr    `json:"addr"`
	Symbol string  `json:"symbol,omitempty"`
	Offset *uint64 `json:"offset,omitempty"`
	Module string  `json:"module,omitempty"`
}

// abiNames are the values of "abi" of a system call.
var abiNames = [...]string{sysno.Native: "", sysno.Compat: "compat", sysno.Unknown: "unknown"}

// jsonTask is all but the threads and the mappings.
func (v *view) jsonTask(t *taskView) jsonTask {
	l, p := &t.Linux, t.Linux.Present
	out := jsonTask{
		ID: addr(t.ID), Pid: show.Number(t.ID), Name: Clean(t.Name), Kernel: t.IsKernel(), Exiting: t.Transitioning, Self: t.IsSelf(),
		InExec: p&kcdata.TaskInExec != 0, CoreDumping: p&kcdata.TaskCoreDumping != 0,
		Ppid: present(p, kcdata.TaskHasIDs, l.Ppid), Pgid: present(p, kcdata.TaskHasIDs, l.Pgid), Sid: present(p, kcdata.TaskHasIDs, l.Sid),
		UID: present(p, kcdata.TaskHasIDs, l.UID), GID: present(p, kcdata.TaskHasIDs, l.GID),
		EUID: present(p, kcdata.TaskHasIDs, l.EUID), EGID: present(p, kcdata.TaskHasIDs, l.EGID),
		StartNs: present(p, kcdata.TaskHasTimes, l.StartBoottime), ExitCode: present(p, kcdata.TaskHasSignal, l.ExitCode),
		OOMScoreAdj: present(p, kcdata.TaskHasOOM, l.OOMScoreAdj), CgroupID: present(p, kcdata.TaskHasCgroup, addr(l.CgroupID)),
		Cgroup: Clean(t.Cgroup), ExePath: Clean(t.ExePath), Cmdline: cleanAll(t.Cmdline), NotRead: cleanAll(t.EnrichFailed),
		PerfMap: Clean(t.PerfMap),
		Threads: []jsonThread{},
	}
	if t.Exe != nil {
		out.ExeName = Clean(t.Exe.FileName())
	}
	if m := t.Memory; m != nil {
		out.Memory = &jsonMemory{m.RssFile, m.RssAnon, m.RssShmem, m.Swap, m.TotalVM, m.LockedVM}
	}
	return out
}

// writeTask writes it thread by thread and mapping by mapping: files may make much of
// little.
func (v *view) writeTask(j *jsonWriter, t *taskView, prefix string) {
	threads := t.threadViews()
	j.open(v.jsonTask(t), prefix)
	j.list("", len(threads), prefix, &j.threads, func(i int) any { return v.jsonThread(threads[i]) })
	if len(t.Mappings) > 0 {
		j.list("mappings", len(t.Mappings), prefix, &j.mappings, func(i int) any { return newJSONMap(&t.Mappings[i]) })
	}
	j.close(prefix)
}

func (v *view) jsonThread(t *threadView) jsonThread {
	l, p := &t.Linux, t.Linux.Present
	out := jsonThread{
		ID: addr(t.ID), Tid: show.Number(t.ID), Name: Clean(t.Name), Class: t.state.Class.String(), State: t.state.Words, Self: t.IsSelf(),
		OnCPU:   present(p, kcdata.ThreadHasOnCPU, l.OnCPU != 0),
		UtimeNs: present(p, kcdata.ThreadHasTimes, l.Utime), StimeNs: present(p, kcdata.ThreadHasTimes, l.Stime),
		RuntimeNs: present(p, kcdata.ThreadHasRuntime, l.SumExecRuntime), RunDelayNs: present(p, kcdata.ThreadHasRuntime, l.RunDelay),
		TimesRun: present(p, kcdata.ThreadHasRuntime, l.Pcount),
		Nvcsw:    present(p, kcdata.ThreadHasSwitches, l.Nvcsw), Nivcsw: present(p, kcdata.ThreadHasSwitches, l.Nivcsw),
		MinFlt: present(p, kcdata.ThreadHasFaults, l.MinFlt), MajFlt: present(p, kcdata.ThreadHasFaults, l.MajFlt),
		Wchan: Clean(t.Wchan), StackNote: t.note, Truncated: p&kcdata.ThreadTruncated != 0,
		Displaced: present(p, kcdata.ThreadDisplaced, l.DisplacedNs), Skipped: l.KstackSkipped,
		Kernel:    v.jsonFrames(t.Kernel),
		UserNotes: t.notes, UserWalk: jsonWalkOf(t.UserWalk),
	}
	out.User, out.Unnamed = v.jsonUserStack(t)
	if t.HasLinux {
		bits := addr(uint64(l.State) | uint64(l.ExitState))
		out.StateBits, out.CPU, out.Policy, out.Prio, out.Nice = &bits, &l.CPU, &l.Policy, &l.Prio, &l.Nice
	}
	if s := t.Sample; s != nil {
		out.Sample = &jsonSample{s.CPU, s.User != 0, addr(s.IP), s.DelayNs}
	}
	out.AgeNs, out.AboutNs = t.age.Bounds()
	if s := t.Syscall; s != nil {
		abi := callABI(t.Thread)
		out.Syscall = &jsonSyscall{Nr: s.Nr, ABI: abiNames[abi], IP: addr(s.IP), SP: addr(s.SP)}
		out.Syscall.Name, _ = sysno.Name(v.s.Arch, abi, s.Nr)
		for i, a := range s.Args {
			out.Syscall.Args[i] = addr(a)
		}
	}
	if io := t.IO; io != nil {
		out.IO = &jsonIO{io.Rchar, io.Wchar, io.Syscr, io.Syscw, io.ReadBytes, io.WriteBytes}
	}
	for _, n := range t.NS {
		out.NS = append(out.NS, jsonNS(n))
	}
	return out
}

func (v *view) jsonFrames(addrs []uint64) []jsonFrame {
	out := make([]jsonFrame, len(addrs))
	for i, a := range addrs {
		out[i].Addr = addr(a)
		if sym, ok := v.s.Symbols.Name(a); ok {
			off := sym.Offset
			out[i].Symbol, out[i].Offset, out[i].Module = Clean(sym.Name), &off, Clean(sym.Module)
		}
	}
	return out
}
