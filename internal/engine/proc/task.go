package proc

import (
	"os"

	"stackshot/internal/clock"
	"stackshot/internal/host"
	"stackshot/internal/procfs"
	"stackshot/kcdata"
)

// threadFiles are read of each thread.
const threadFiles = procfs.ReadStat | procfs.ReadStatus | procfs.ReadStack | procfs.ReadWchan |
	procfs.ReadSchedstat | procfs.ReadSyscall | procfs.ReadIO

// taskFiles are read of the leader; the order is used below.
func taskFiles() []procfs.File {
	files := []procfs.File{{Name: "stat", Max: 4096}, {Name: "status", Max: 16 << 10}, {Name: "oom_score_adj", Max: 32}}
	for _, n := range namespaceLinks {
		files = append(files, procfs.File{Name: "ns/" + n, Op: procfs.OpLink, Max: 64})
	}
	return files
}

var namespaceLinks = []string{"mnt", "pid", "net", "uts", "ipc", "cgroup", "time", "user"}

// read writes one task with all its threads. An error leaves the chain in
// the middle of it.
func (r *reader) read(tgid int) (threads uint32, err error) {
	r.engine.proc.Read(procfs.TaskDir(tgid), r.task)
	if err := r.task[0].Err; err != nil {
		return 0, err
	}
	st, err := procfs.ParseStat(r.task[0].Data)
	if err != nil {
		return 0, err
	}
	status, statusErr := procfs.ParseStatus(r.task[1].Data)
	if statusErr != nil {
		status = procfs.ProcStatus{}
	}
	tids, err := r.engine.proc.Threads(tgid)
	if err != nil {
		return 0, err
	}
	w := &kcdata.StickyWriter{ItemWriter: r.Chain}
	if r.pastExit(tgid, &st, tids) {
		w.Note(w.BeginContainer(kcdata.TypeTransitioningTask, uint64(tgid)))
		r.exitSnapshot(w, tgid, &st)
	} else {
		w.Note(w.BeginContainer(kcdata.TypeTask, uint64(tgid)))
		r.taskSnapshot(w, tgid, &st, &status)
	}
	r.taskItems(w, tgid, &st, &status)
	for _, tid := range tids {
		t, err := r.threads.Read(tgid, tid)
		if err != nil && (t == nil || t.Have&procfs.ReadStat == 0) {
			if procfs.Gone(err) {
				continue
			}
			return 0, err
		}
		r.threadItems(w, tgid, t, err)
		threads++
	}
	w.Note(w.EndContainer(uint64(tgid)))
	return threads, w.Err
}

// pastExit reports whether every thread has begun to exit, as past_exit of
// internal/bpf/record_task.h does.
func (r *reader) pastExit(tgid int, st *procfs.ProcStat, tids []int) bool {
	if st.Flags&kcdata.PFExiting == 0 {
		return false
	}
	for _, tid := range tids {
		if tid == tgid {
			continue
		}
		stat := []procfs.File{{Name: "stat", Max: 4096}}
		r.engine.proc.Read(procfs.ThreadDir(tgid, tid), stat)
		if stat[0].Err != nil {
			continue // gone, which is past its exit
		}
		if other, err := procfs.ParseStat(stat[0].Data); err == nil && other.Flags&kcdata.PFExiting == 0 {
			return false
		}
	}
	return true
}

func (r *reader) exitSnapshot(w *kcdata.StickyWriter, tgid int, st *procfs.ProcStat) {
	snap := kcdata.TransitioningTaskSnapshot{
		UniquePid: uint64(tgid), Pid: int32(tgid), SSFlags: kcdata.SSUser64 | kcdata.SSKernel64, TransitionType: 1,
	}
	copy(snap.Comm[:31], st.Comm)
	w.Record(kcdata.TypeTransitioningSnapshot, &snap)
}

func (r *reader) taskSnapshot(w *kcdata.StickyWriter, tgid int, st *procfs.ProcStat, status *procfs.ProcStatus) {
	snap := kcdata.TaskSnapshot{
		UniquePid: uint64(tgid), Pid: int32(tgid), SSFlags: kcdata.SSKernel64,
		Faults: uint32(st.MinFlt + st.MajFlt), Pageins: uint32(st.MajFlt), StartSec: (clock.BootEpoch() + st.StartBoottime()) / Second,
	}
	copy(snap.Comm[:31], st.Comm)
	if status.Present&procfs.StatusHasMemory != 0 {
		snap.SSFlags |= kcdata.SSUser64
		snap.TaskSize, snap.MaxResidentSize = status.VmRSS, status.VmHWM
	}
	w.Record(kcdata.TypeTaskSnapshot, &snap)
}

func (r *reader) taskItems(w *kcdata.StickyWriter, tgid int, st *procfs.ProcStat, status *procfs.ProcStatus) {
	lx := taskOf(tgid, st, status)
	if adj, err := procfs.ParseOOMScoreAdj(r.task[2].Data); r.task[2].Err == nil && err == nil {
		lx.OOMScoreAdj = adj
		lx.Present |= kcdata.TaskHasOOM
	}
	w.Record(kcdata.TypeLinuxTask, &lx)
	ns := r.namespaces()
	w.Record(kcdata.TypeLinuxTaskNS, &ns)
	if status.Present&procfs.StatusHasMemory != 0 {
		m := memoryOf(status)
		if !r.engine.redact && st.EndCode != procfs.NoRight {
			m.StartStack, m.EndCode, m.EndData = st.StartStack, st.EndCode, st.EndData
		}
		w.Record(kcdata.TypeLinuxTaskMemory, &m)
	}
}

var selfTgid = os.Getpid()

const (
	Second = 1_000_000_000
	TickNs = Second / host.UserHz
)

func taskOf(tgid int, st *procfs.ProcStat, status *procfs.ProcStatus) kcdata.LinuxTask {
	lx := kcdata.LinuxTask{
		Tgid: uint32(tgid), Ppid: uint32(st.PPID), Pgid: uint32(st.PGRP), Sid: uint32(st.Session),
		UID: status.UID[0], GID: status.GID[0], EUID: status.UID[1], EGID: status.GID[1],
		NrThreads: uint32(st.NumThreads), StartBoottime: st.StartBoottime(),
	}
	lx.Present = kcdata.TaskHasTimes | kcdata.TaskHasThreadCount
	if status.Pid != 0 {
		lx.Present |= kcdata.TaskHasIDs
	}
	if st.Flags&kcdata.PFKthread != 0 {
		lx.Present |= kcdata.TaskIsKernel
	}
	if status.CoreDumping {
		lx.Present |= kcdata.TaskCoreDumping
	}
	if tgid == selfTgid {
		lx.Present |= kcdata.TaskIsSelf
	}
	return lx
}

func (r *reader) namespaces() (ns kcdata.LinuxTaskNS) {
	fields := []*uint32{&ns.Mnt, &ns.Pid, &ns.Net, &ns.UTS, &ns.IPC, &ns.Cgroup, &ns.Time, &ns.User}
	for i, f := range r.task[3:] {
		if f.Err == nil {
			_, *fields[i], _ = procfs.ParseNSLink(f.Data)
		}
	}
	return ns
}

func memoryOf(s *procfs.ProcStatus) kcdata.LinuxTaskMemory {
	return kcdata.LinuxTaskMemory{
		RssFile: s.RssFile, RssAnon: s.RssAnon, RssShmem: s.RssShmem, Swap: s.VmSwap,
		HiwaterRss: s.VmHWM, HiwaterVM: s.VmPeak, TotalVM: s.VmSize, LockedVM: s.VmLck, PinnedVM: s.VmPin,
		DataVM: s.VmData, StackVM: s.VmStk, ExecVM: s.VmExe + s.VmLib, Pgtables: s.VmPTE,
	}
}
