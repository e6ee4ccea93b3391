package collate

import (
	"encoding/binary"
	"strings"

	"stackshot/kcdata"
)

// Values of Apple's named items that mean the same here.
const (
	inFlagsKCData  = 0x10000 // KCDATA_FORMAT
	inPidAll       = 0xffffffff
	systemKernel64 = 0x2
	estimateAdj    = 25 // percent on top of the estimate
)

// preSection is everything before the first task.
func (x *collation) preSection() ([]byte, error) {
	w, bytes := kcdata.NewSticky()
	h, c := x.Host, x.c
	w.Note(w.Begin(kcdata.MagicStackshot))
	for _, t := range kcdata.Definitions() {
		w.Note(w.Define(t))
	}
	w.PutUint64("stackshot_in_flags", inFlagsKCData)
	pid := uint32(inPidAll)
	if len(c.Asked) == 1 {
		pid = c.Asked[0]
	}
	w.PutUint32("stackshot_in_pid", pid)
	w.PutUint64("system_state_flags", systemKernel64)
	w.PutUint32("stackshot_size_estimate", uint32(c.Capture.BufferSize))
	w.PutUint32("stackshot_size_estimate_adj", estimateAdj)
	w.Note(w.Bytes(kcdata.TypeKernPageSize, le32(uint32(h.PageSize))))
	w.Text(kcdata.TypeOSVersion, h.Version)
	w.Text(kcdata.TypeBootArgs, clip(h.Cmdline, 1023))
	w.Record(kcdata.TypeTimebase, &kcdata.Timebase{Numer: 1, Denom: 1})
	m := h.Machine(c.At, c.Wants.Redact)
	w.Note(w.Bytes(kcdata.TypeMachAbsoluteTime, le64(m.MonotonicNs)))
	w.Note(w.Bytes(kcdata.TypeUsecsSinceEpoch, le64(m.RealtimeNs/1000)))
	w.Record(kcdata.TypeLinuxMachine, &m)
	w.Text(kcdata.TypeLinuxHostname, h.Hostname)
	w.Text(kcdata.TypeLinuxRelease, h.Release)
	w.Text(kcdata.TypeLinuxArch, h.Arch)
	w.Text(kcdata.TypeLinuxBootID, h.BootID)
	if h.KernelBuild != nil {
		w.PutBytes(kcdata.TypeLinuxKernelBuild, h.KernelBuild)
	}
	w.Text(kcdata.TypeLinuxToolVersion, "stackshot "+x.Version)
	w.Text(kcdata.TypeLinuxRequest, c.Request)
	w.Text(kcdata.TypeLinuxEngine, c.Engine)
	w.Text(kcdata.TypeLinuxIsolation, c.Isolation)
	if c.Panic != nil {
		w.Record(kcdata.TypeLinuxPanic, c.Panic)
	}
	w.Text(kcdata.TypeLinuxLoadavg, c.State.Loadavg)
	w.Text(kcdata.TypeLinuxMeminfo, c.State.Meminfo)
	w.Text(kcdata.TypeLinuxPressure, c.State.Pressure)
	return bytes(), w.Err
}

// postSection is everything after the last task.
func (x *collation) postSection() ([]byte, error) {
	w, bytes := kcdata.NewSticky()
	c, names := x.c, x.names
	w.PutUint64("stackshot_tasks_count", uint64(x.taskCount()))
	w.PutUint64("stackshot_threads_count", uint64(x.threads))
	w.PutUint64("stackshot_buf_overhead", c.Capture.Overhead)
	w.Array(kcdata.TypeLinuxCPU, c.CPUs)
	if len(c.LeftOut()) > 0 {
		w.Array(kcdata.TypeLinuxLeftOut, c.LeftOut())
	}
	for _, v := range c.Warnings {
		w.Text(kcdata.TypeLinuxWarning, v.Code+": "+v.Text)
	}
	if mods := names.modules(c.Wants.Redact); len(mods) > 0 {
		w.Array(kcdata.TypeLinuxModule, mods)
	}
	if syms := names.symbols(); len(syms) > 0 {
		w.Array(kcdata.TypeLinuxSymbol, syms)
	}
	var groups []kcdata.LinuxCgroup
	if c.Cgroups != nil {
		groups = names.cgroupRecords(c.Cgroups)
	}
	w.PutBytes(kcdata.TypeLinuxStrings, names.strings.Bytes())
	w.Record(kcdata.TypeLinuxCapture, &c.Capture)
	if x.user.Threads > 0 {
		w.Record(kcdata.TypeLinuxUserTaken, &x.user)
	}
	if c.WaitSources != 0 {
		w.Record(kcdata.TypeLinuxWaitTaken, &x.waits.taken)
	}
	if c.FileSources != 0 {
		x.files.write(w)
	}
	if c.Cgroups != nil {
		w.Record(kcdata.TypeLinuxCgroupsTaken, &c.Cgroups.Taken)
		w.ArrayIfAny(kcdata.TypeLinuxCgroup, groups, len(groups))
	}
	x.howItWent(w)
	w.Record(kcdata.TypeDuration, &kcdata.Duration{
		Duration: c.Capture.WindowNs, Outer: c.Capture.ElapsedNs, Prior: c.PriorNs(),
	})
	w.PutUint64("stackshot_tries", uint64(c.Capture.Tries))
	w.PutUint64("stackshot_out_flags", inFlagsKCData)
	w.Note(w.End())
	return bytes(), w.Err
}

// howItWent writes the records on the capture itself: which threads ran meanwhile, where
// the time went, and the trace if something went wrong.
func (x *collation) howItWent(w *kcdata.StickyWriter) {
	c := x.c
	if v := c.Second; v != nil {
		r := v.Record()
		w.Record(kcdata.TypeLinuxAtomicity, &r)
		w.ArrayIfAny(kcdata.TypeLinuxRan, v.Who, len(v.Who))
	}
	w.ArrayIfAny(kcdata.TypeLinuxTry, c.Tries, len(c.Tries))
	if c.KeepTrace || c.Troubled() {
		w.ArrayIfAny(kcdata.TypeLinuxTrace, c.Trace, len(c.Trace))
	}
	if !c.Wants.Timed {
		return
	}
	w.ArrayIfAny(kcdata.TypeLinuxPhases, c.Phases, len(c.Phases))
	w.ArrayIfAny(kcdata.TypeLinuxArena, c.Arenas, len(c.Arenas))
	w.Array(kcdata.TypeLatencyInfoCPU, latencyCPUs(c))
	w.Record(kcdata.TypeLatencyInfo, collectionOf(c))
}

func le32(v uint32) []byte { return binary.LittleEndian.AppendUint32(nil, v) }
func le64(v uint64) []byte { return binary.LittleEndian.AppendUint64(nil, v) }

func clip(s string, n int) string {
	if len(s) > n {
		return strings.ToValidUTF8(s[:n], "")
	}
	return s
}
