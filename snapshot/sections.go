package snapshot

import (
	"strings"

	"stackshot/internal/procfs"
	"stackshot/kcdata"
)

// Values of Apple's named items that mean the same here.
const (
	inFlagsKCData  = 0x10000 // KCDATA_FORMAT
	inPidAll       = 0xffffffff
	systemKernel64 = 0x2
	estimateAdj    = 25 // percent on top of the estimate
)

// section collects the first error of many writes.
type section struct {
	kcdata.ItemWriter
	err error
}

func (s *section) note(err error) {
	if s.err == nil {
		s.err = err
	}
}

// text writes a string. An empty one is absent.
func (s *section) text(t kcdata.Type, v string) {
	if v == "" {
		return
	}
	v = strings.ReplaceAll(v, "\x00", "")
	s.note(s.String(t, v))
}

func (s *section) bytes(t kcdata.Type, v []byte)     { s.note(s.Bytes(t, v)) }
func (s *section) record(t kcdata.Type, v any)       { s.note(s.Struct(t, v)) }
func (s *section) uint64(name string, v uint64)      { s.note(s.Uint64Desc(name, v)) }
func (s *section) uint32(name string, v uint32)      { s.note(s.Uint32Desc(name, v)) }
func (s *section) array(t kcdata.Type, elements any) { s.note(s.StructArray(t, elements)) }

// some writes an array that is absent where it is empty.
func (s *section) some(t kcdata.Type, elements any, n int) {
	if n > 0 {
		s.array(t, elements)
	}
}

// heapChain grows by allocating: only for while the world runs.
func heapChain() *kcdata.Chain {
	return kcdata.NewChain(1<<16, func(least int) ([]byte, error) {
		return make([]byte, max(least, 64<<10)), nil
	}, func([]byte) {})
}

// newSection writes into memory that grows: sections are written while the
// world runs.
func newSection() (*section, func() []byte) {
	chain := heapChain()
	from := chain.Mark()
	return &section{ItemWriter: chain}, func() []byte {
		var out []byte
		for b := range chain.Span(from, chain.Mark()) {
			out = append(out, b...)
		}
		return out
	}
}

// preSection is everything before the first task.
func (s *Session) preSection(sc scope, c *captured) ([]byte, error) {
	w, bytes := newSection()
	h := s.host
	w.note(w.Begin(kcdata.MagicStackshot))
	for _, t := range kcdata.Definitions() {
		w.note(w.Define(t))
	}
	w.uint64("stackshot_in_flags", inFlagsKCData)
	pid := uint32(inPidAll)
	if len(sc.pids) == 1 {
		pid = sc.pids[0].Tgid
	}
	w.uint32("stackshot_in_pid", pid)
	w.uint64("system_state_flags", systemKernel64)
	w.uint32("stackshot_size_estimate", uint32(c.capture.BufferSize))
	w.uint32("stackshot_size_estimate_adj", estimateAdj)
	w.note(w.Bytes(kcdata.TypeKernPageSize, le32(uint32(pageSize))))
	w.text(kcdata.TypeOSVersion, h.version)
	w.text(kcdata.TypeBootArgs, clip(h.cmdline, 1023))
	w.record(kcdata.TypeTimebase, &kcdata.Timebase{Numer: 1, Denom: 1})
	m := h.machine(c.at, s.options.Redact)
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
	w.text(kcdata.TypeLinuxToolVersion, "stackshot "+Version())
	w.text(kcdata.TypeLinuxRequest, sc.words)
	w.text(kcdata.TypeLinuxEngine, c.engine)
	w.text(kcdata.TypeLinuxIsolation, c.isolation)
	s.state(w)
	return bytes(), w.err
}

// state is how the machine was doing, as its own files say.
func (s *Session) state(w *section) {
	for _, f := range []struct {
		t    kcdata.Type
		read func() (string, error)
	}{
		{kcdata.TypeLinuxLoadavg, s.machine.Loadavg},
		{kcdata.TypeLinuxMeminfo, s.machine.Meminfo},
		{kcdata.TypeLinuxPressure, s.machine.Pressure},
	} {
		if text, err := f.read(); err == nil {
			w.text(f.t, text)
		}
	}
}

// postSection is everything after the last task.
func (s *Session) postSection(c *captured, n counts, names *names) ([]byte, error) {
	w, bytes := newSection()
	w.uint64("stackshot_tasks_count", uint64(n.tasks))
	w.uint64("stackshot_threads_count", uint64(n.threads))
	w.uint64("stackshot_buf_overhead", c.capture.Overhead)
	w.array(kcdata.TypeLinuxCPU, c.cpus)
	if len(c.leftOut()) > 0 {
		w.array(kcdata.TypeLinuxLeftOut, c.leftOut())
	}
	for _, x := range c.warnings {
		w.text(kcdata.TypeLinuxWarning, x.Code+": "+x.Text)
	}
	if mods := names.modules(s.options.Redact); len(mods) > 0 {
		w.array(kcdata.TypeLinuxModule, mods)
	}
	if syms := names.symbols(); len(syms) > 0 {
		w.array(kcdata.TypeLinuxSymbol, syms)
	}
	w.bytes(kcdata.TypeLinuxStrings, names.strings.Bytes())
	w.record(kcdata.TypeLinuxCapture, &c.capture)
	if n.user.Threads > 0 {
		w.record(kcdata.TypeLinuxUserTaken, &n.user)
	}
	s.howItWent(w, c)
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
func (s *Session) howItWent(w *section, c *captured) {
	if x := c.second; x != nil {
		r := x.record()
		w.record(kcdata.TypeLinuxAtomicity, &r)
		w.some(kcdata.TypeLinuxRan, x.who, len(x.who))
	}
	w.some(kcdata.TypeLinuxTry, c.tries, len(c.tries))
	if c.keepTrace || c.troubled() {
		w.some(kcdata.TypeLinuxTrace, c.trace, len(c.trace))
	}
	if s.options.Latency == LatencyOff {
		return
	}
	w.some(kcdata.TypeLinuxPhases, c.phases, len(c.phases))
	w.some(kcdata.TypeLinuxArena, c.arenas, len(c.arenas))
	w.array(kcdata.TypeLatencyInfoCPU, c.latencyCPUs())
	w.record(kcdata.TypeLatencyInfo, c.collection())
}

// modulesOf reads the loaded modules; none where /proc hides them.
func modulesOf() []procfs.Module {
	mods, err := procfs.ReadModules("/proc", "/sys")
	if err != nil {
		return nil
	}
	return mods
}

func clip(s string, n int) string {
	if len(s) > n {
		return strings.ToValidUTF8(s[:n], "")
	}
	return s
}
