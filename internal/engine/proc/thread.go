package proc

import (
	"errors"

	"golang.org/x/sys/unix"

	"stackshot/internal/model"
	"stackshot/internal/procfs"
	"stackshot/kcdata"
)

func (r *reader) threadItems(w *kcdata.StickyWriter, tgid int, t *procfs.Thread, err error) {
	lx := threadOf(tgid, t)
	id := uint64(lx.Tid)
	stack := r.stack(&lx, t)
	snap := kcdata.ThreadSnapshot{
		ThreadID: id, UserTime: lx.Utime, SysTime: lx.Stime, SSFlags: kcdata.SSKernel64, State: model.XNUState(lx.State, lx.ExitState),
		BasePriority: int16(139 - (lx.Nice + 120)), SchedPriority: int16(139 - lx.Prio),
	}
	if t.Stat.VSize != 0 {
		snap.SSFlags |= kcdata.SSUser64
	}
	if lx.Tid == lx.Tgid {
		snap.SSFlags |= kcdata.SSMain
	}
	w.Note(w.BeginContainer(kcdata.TypeThread, id))
	w.Record(kcdata.TypeThreadSnapshot, &snap)
	name := [64]byte{}
	copy(name[:63], t.Stat.Comm)
	w.Note(w.Bytes(kcdata.TypeThreadName, name[:]))
	w.Record(kcdata.TypeCPUTimes, &kcdata.CPUTimes{
		UserUsec: lx.Utime / 1000, SystemUsec: lx.Stime / 1000, RunnableUsec: (lx.SumExecRuntime + lx.RunDelay) / 1000,
	})
	w.Record(kcdata.TypeLinuxThread, &lx)
	if t.Have&procfs.ReadStatus != 0 {
		w.Record(kcdata.TypeLinuxSignals, &kcdata.LinuxSignals{
			Pending: t.Status.SigPnd, SharedPending: t.Status.ShdPnd, Blocked: t.Status.SigBlk,
		})
	}
	if len(stack) > 0 {
		w.Note(w.Uint64s(kcdata.TypeKernStackLR64, stack))
	}
	r.optionalItems(w, &lx, t)
	r.userItems(w, &lx, t, err)
	w.Note(w.EndContainer(id))
}

func (r *reader) optionalItems(w *kcdata.StickyWriter, lx *kcdata.LinuxThread, t *procfs.Thread) {
	if t.Have&procfs.ReadIO != 0 {
		w.Record(kcdata.TypeLinuxThreadIO, &kcdata.LinuxThreadIO{
			Rchar: t.IO.Rchar, Wchar: t.IO.Wchar, Syscr: t.IO.Syscr, Syscw: t.IO.Syscw,
			ReadBytes: t.IO.ReadBytes, WriteBytes: t.IO.WriteBytes, CancelledWrite: t.IO.CancelledWriteBytes,
		})
	}
	if t.Have&procfs.ReadWchan != 0 && t.Wchan != "" {
		w.Text(kcdata.TypeLinuxWchan, t.Wchan)
	}
	if deeper := t.Status.NSpid; t.Have&procfs.ReadStatus != 0 && len(deeper) > 1 {
		inner := make([]kcdata.LinuxThreadNS, 0, len(deeper)-1)
		for _, nr := range deeper[1:] {
			inner = append(inner, kcdata.LinuxThreadNS{Tid: uint32(nr)}) // /proc does not give the inode
		}
		w.Array(kcdata.TypeLinuxThreadNS, inner)
	}
	if t.Have&procfs.ReadSyscall != 0 && t.Syscall.InUserSpace() {
		call := kcdata.LinuxSyscall{Nr: t.Syscall.Nr, IP: t.Syscall.PC, SP: t.Syscall.SP, Args: t.Syscall.Args}
		if r.engine.redact {
			call = kcdata.LinuxSyscall{Nr: call.Nr}
		}
		w.Record(kcdata.TypeLinuxSyscall, &call)
	}
}

func threadOf(tgid int, t *procfs.Thread) kcdata.LinuxThread {
	st := &t.Stat
	lx := kcdata.LinuxThread{
		Tid: uint32(st.PID), Tgid: uint32(tgid), Flags: st.Flags, CPU: st.Processor, Policy: st.Policy,
		Prio: st.Priority + 100, RtPriority: st.RTPriority, Nice: st.Nice, ExitCode: st.ExitCode,
		StartBoottime: st.StartBoottime(),
		Utime:         st.Utime * TickNs, Stime: st.Stime * TickNs, MinFlt: st.MinFlt, MajFlt: st.MajFlt,
	}
	lx.State, lx.ExitState = model.StateOfLetter(st.State)
	lx.Present = kcdata.ThreadHasFaults | kcdata.ThreadHasStart
	if st.Fields >= 52 {
		lx.Present |= kcdata.ThreadHasExitCode
	}
	if t.Have&procfs.ReadSchedstat != 0 {
		lx.SumExecRuntime, lx.RunDelay, lx.Pcount = t.Schedstat.RunNs, t.Schedstat.RunDelayNs, t.Schedstat.Timeslices
		lx.Present |= kcdata.ThreadHasRuntime
	}
	if t.Have&procfs.ReadStatus != 0 {
		lx.Nvcsw, lx.Nivcsw = t.Status.VoluntaryCtxtSwitches, t.Status.NonvoluntaryCtxtSwitches
		lx.Present |= kcdata.ThreadHasSwitches
	}
	if t.Have&procfs.ReadSyscall != 0 && t.Syscall.InUserSpace() && t.Syscall.Nr == -1 {
		lx.Present |= kcdata.ThreadUserMode
	}
	// /proc does not say which programs are 32-bit; but all their addresses are below 4 GiB.
	if c := &t.Syscall; t.Have&procfs.ReadSyscall != 0 && c.InUserSpace() && c.Nr >= 0 && c.PC>>32 == 0 && c.SP>>32 == 0 {
		lx.Present |= kcdata.ThreadCallUnsure
	}
	if tgid == selfTgid {
		lx.Present |= kcdata.ThreadIsSelf
	}
	return lx
}

// stack looks up the addresses of the symbols in /proc/PID/task/TID/stack, which hides
// addresses. A symbol whose name is not unique gives no frame; the record then has
// ENOENT as the unwinder's error.
func (r *reader) stack(lx *kcdata.LinuxThread, t *procfs.Thread) []uint64 {
	if t.Have&procfs.ReadStack == 0 {
		return nil
	}
	lx.Present |= kcdata.ThreadHasStack
	var out []uint64
	for _, f := range t.Stack.Frames {
		addr := f.Addr
		if addr == 0 && r.engine.symbols != nil {
			base, err := r.engine.symbols.Lookup(f.Symbol, f.Module, f.Size)
			if errors.Is(err, procfs.ErrKallsymsUnknown) || errors.Is(err, procfs.ErrKallsymsAmbiguous) {
				lx.KstackErr = int32(unix.ENOENT)
				continue
			}
			addr = base + f.Offset
		}
		if addr != 0 {
			out = append(out, addr)
		}
	}
	lx.KstackDepth = uint32(len(out))
	if t.Stack.Truncated {
		lx.Present |= kcdata.ThreadTruncated
	}
	return out
}
