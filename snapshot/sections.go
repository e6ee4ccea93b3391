package snapshot

import (
	"encoding/binary"
	"os"
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
	w, bytes := newSection()
	h, c := x.host, x.c
	w.note(w.Begin(kcdata.MagicStackshot))
	for _, t := range kcdata.Definitions() {
		w.note(w.Define(t))
	}
	w.uint64("stackshot_in_flags", inFlagsKCData)
	pid := uint32(inPidAll)
	if len(c.asked) == 1 {
		pid = c.asked[0]
	}
	w.uint32("stackshot_in_pid", pid)
	w.uint64("system_state_flags", systemKernel64)
	w.uint32("stackshot_size_estimate", uint32(c.capture.BufferSize))
	w.uint32("stackshot_size_estimate_adj", estimateAdj)
	w.note(w.Bytes(kcdata.TypeKernPageSize, le32(uint32(pageSize))))
	w.text(kcdata.TypeOSVersion, h.version)
	w.text(kcdata.TypeBootArgs, clip(h.cmdline, 1023))
	w.record(kcdata.TypeTimebase, &kcdata.Timebase{Numer: 1, Denom: 1})
	m := h.machine(c.at, x.redact)
	w.note(w.Bytes(kcdata.TypeMachAbsoluteTime, le64(m.MonotonicNs)))
	w.note(w.Bytes(kcdata.TypeUsecsSinceEpoch, le64(m.RealtimeNs/1000)))
	w.record(kcdata.TypeLinuxMachine, &m)
	w.text(kcdata.TypeLinuxHostname, h.hostname)
	w.text(kcdata.TypeLinuxRelease, h.release)
	w.text(kcdata.TypeLinuxArch, h.arch)
	w.text(kcdata.TypeLinuxBootID, h.bootID)
	if h.kernelBuild != nil {
		w.bytes(kcdata.TypeLinuxKernelBuild, h.kernelBuild)
	}
	w.text(kcdata.TypeLinuxToolVersion, "stackshot "+x.version)
	w.text(kcdata.TypeLinuxRequest, c.request)
	w.text(kcdata.TypeLinuxEngine, c.engine)
	w.text(kcdata.TypeLinuxIsolation, c.isolation)
	w.text(kcdata.TypeLinuxLoadavg, c.state.loadavg)
	w.text(kcdata.TypeLinuxMeminfo, c.state.meminfo)
	w.text(kcdata.TypeLinuxPressure, c.state.pressure)
	return bytes(), w.err
}

// postSection is everything after the last task.
func (x *collation) postSection() ([]byte, error) {
	w, bytes := newSection()
	c, names := x.c, x.names
	w.uint64("stackshot_tasks_count", uint64(len(x.tasks)))
	w.uint64("stackshot_threads_count", uint64(x.threads))
	w.uint64("stackshot_buf_overhead", c.capture.Overhead)
	w.array(kcdata.TypeLinuxCPU, c.cpus)
	if len(c.leftOut()) > 0 {
		w.array(kcdata.TypeLinuxLeftOut, c.leftOut())
	}
	for _, v := range c.warnings {
		w.text(kcdata.TypeLinuxWarning, v.Code+": "+v.Text)
	}
	if mods := names.modules(x.redact); len(mods) > 0 {
		w.array(kcdata.TypeLinuxModule, mods)
	}
	if syms := names.symbols(); len(syms) > 0 {
		w.array(kcdata.TypeLinuxSymbol, syms)
	}
	w.bytes(kcdata.TypeLinuxStrings, names.strings.Bytes())
	w.record(kcdata.TypeLinuxCapture, &c.capture)
	if x.user.Threads > 0 {
		w.record(kcdata.TypeLinuxUserTaken, &x.user)
	}
	x.howItWent(w)
	w.record(kcdata.TypeDuration, &kcdata.Duration{
		Duration: c.capture.WindowNs, Outer: c.capture.ElapsedNs, Prior: c.priorNs(),
	})
	w.uint64("stackshot_tries", uint64(c.capture.Tries))
	w.uint64("stackshot_out_flags", inFlagsKCData)
	w.note(w.End())
	return bytes(), w.err
}

// howItWent is what the capture says about itself: what moved, where the time
// went, and, if something went wrong, what we did.
func (x *collation) howItWent(w *section) {
	c := x.c
	if v := c.second; v != nil {
		r := v.record()
		w.record(kcdata.TypeLinuxAtomicity, &r)
		w.some(kcdata.TypeLinuxRan, v.who, len(v.who))
	}
	w.some(kcdata.TypeLinuxTry, c.tries, len(c.tries))
	if c.keepTrace || c.troubled() {
		w.some(kcdata.TypeLinuxTrace, c.trace, len(c.trace))
	}
	if !x.timed {
		return
	}
	w.some(kcdata.TypeLinuxPhases, c.phases, len(c.phases))
	w.some(kcdata.TypeLinuxArena, c.arenas, len(c.arenas))
	w.array(kcdata.TypeLatencyInfoCPU, latencyCPUs(c))
	w.record(kcdata.TypeLatencyInfo, collectionOf(c))
}

var pageSize = os.Getpagesize()

func le32(v uint32) []byte { return binary.LittleEndian.AppendUint32(nil, v) }
func le64(v uint64) []byte { return binary.LittleEndian.AppendUint64(nil, v) }

func clip(s string, n int) string {
	if len(s) > n {
		return strings.ToValidUTF8(s[:n], "")
	}
	return s
}
