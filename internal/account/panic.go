package account

import (
	"bytes"
	"cmp"
	"fmt"

	"stackshot/internal/show"
	"stackshot/kcdata"
)

// PanicTitle says what began a capture that the kernel took in a panic or a SysRq: "kernel
// panic: MESSAGE, on CPU 1 by bash [123]". "": nothing of that kind.
func PanicTitle(s *kcdata.Snapshot) string {
	if s.Panic == nil {
		return ""
	}
	return TitleOf(s.Panic)
}

// TitleOf is PanicTitle of a record.
func TitleOf(p *kcdata.LinuxPanic) string {
	what := "kernel panic"
	switch p.Cause {
	case kcdata.PanicBySysrq:
		what = "by SysRq " + sysrqKey(p.Key)
	case kcdata.PanicByCrash:
		what = "kernel crash"
	}
	if text := show.Clean(cString(p.Message[:])); text != "" {
		what += ": " + text
	}
	who := fmt.Sprintf("%s [%d]", cmp.Or(show.Clean(cString(p.Comm[:])), "?"), p.Tid)
	if p.Tid == 0 {
		who = "its idle thread"
	}
	return fmt.Sprintf("%s, on CPU %d by %s", what, p.CPU, who)
}

func sysrqKey(key uint32) string {
	if key > ' ' && key < 0x7f {
		return string(rune(key))
	}
	return fmt.Sprintf("%#x", key)
}

// panicOutcomes are the stable names of kcdata.Panic outcomes, and what they mean.
var panicOutcomes = map[uint32]struct{ name, text string }{
	kcdata.PanicInProgress: {"in_progress", "the kernel did not come to the end of its list of threads: the machine died, or was dumped, before"},
	kcdata.PanicWhole:      {"whole", ""},
	kcdata.PanicNoRoom:     {"no_room", "the memory for the records was full: threads are missing"},
	kcdata.PanicOutOfTime:  {"out_of_time", "the time for the records was up: threads are missing"},
}

// PanicLimits says what the record of a panic takes from the trust in a snapshot, worst first.
func PanicLimits(s *kcdata.Snapshot) (out show.Parts) {
	p := s.Panic
	if p == nil {
		return nil
	}
	if o, known := panicOutcomes[p.Outcome]; !known {
		out.Add("how the recording ended is not known (%d)", p.Outcome)
	} else if o.text != "" {
		out.Add("%s. %s with %s are recorded, %s", o.text, show.Count(int(p.Tasks), "task"), show.Count(int(p.Threads), "thread"), show.Size(p.Bytes))
	}
	out.If(p.Flags&kcdata.PanicTorn != 0, "the words that describe this panic are damaged in the dump: what is said of it may be wrong")
	out.If(p.PagesLost > 0, "%s of the records could not be read from the dump: tasks that lie there are left out", show.Count(int(p.PagesLost), "page"))
	out.If(p.PagesAbsent > 0, "%s of the records are not in the dump and count as zeros: a dump level leaves out pages of zeros, and values there may be wrong if it left out others", show.Count(int(p.PagesAbsent), "page"))
	out.If(p.Nested > 0, "%s of a panic or SysRq came while these records stood, and left no record of its own", show.Count(int(p.Nested), "more call"))
	out.If(p.Lost > 0, "the records of %s, which nobody had saved, were lost to this panic", show.Count(int(p.Lost), "SysRq"))
	return out
}

// PanicStill says that nothing was stopped: what ran on other CPUs has no kernel stack.
func PanicStill(s *kcdata.Snapshot) string {
	running := 0
	for _, t := range s.Tasks {
		for _, th := range t.Threads {
			if th.HasLinux && th.Linux.OnCPU != 0 && th.Linux.CPU != s.Panic.CPU && th.Linux.Present&kcdata.ThreadIsIdle == 0 {
				running++
			}
		}
	}
	text := fmt.Sprintf("nothing was stopped: CPU %d recorded all threads one after the other", s.Panic.CPU)
	if running > 0 {
		text += fmt.Sprintf("; %s ran on other CPUs, without a stack here", show.Count(running, "thread"))
	}
	return text
}

// PanicMark is the mark of the thread that panicked, or that handled the SysRq; "": it is another one.
func PanicMark(s *kcdata.Snapshot, t *kcdata.Thread) string {
	switch {
	case !PanickedHere(s, t):
		return ""
	case s.Panic.Cause == kcdata.PanicBySysrq:
		return "handled the SysRq here"
	}
	return "panicked here"
}

// PanickedHere reports whether a thread is the one that panicked, or that handled the SysRq.
func PanickedHere(s *kcdata.Snapshot, t *kcdata.Thread) bool {
	p := s.Panic
	if p == nil {
		return false
	}
	if p.Tid == 0 {
		return t.ID == kcdata.IdleThreadID(p.CPU)
	}
	return t.ID == uint64(p.Tid)
}

var panicCauses = map[uint32]string{kcdata.PanicBySysrq: "sysrq", kcdata.PanicByPanic: "panic", kcdata.PanicByCrash: "crash"}

// PanicJSON is the object of the report; nil: neither a panic nor a SysRq began the capture.
func PanicJSON(s *kcdata.Snapshot) show.Object {
	p := s.Panic
	if p == nil {
		return nil
	}
	has := func(bit uint32) bool { return p.Flags&bit != 0 }
	text := func(b []byte) *string { return show.Known(show.Clean(cString(b))) }
	key := ""
	if p.Cause == kcdata.PanicBySysrq {
		key = sysrqKey(p.Key)
	}
	return show.Object{
		{"cause", cmp.Or(panicCauses[p.Cause], "unknown")}, {"outcome", cmp.Or(panicOutcomes[p.Outcome].name, "unknown")},
		{"message", text(p.Message[:])}, {"key", show.Known(key)}, {"by_key", has(kcdata.PanicByKey)}, {"hook", text(p.Hook[:])},
		{"cpu", p.CPU}, {"tid", p.Tid}, {"pid", p.Tgid}, {"comm", text(p.Comm[:])},
		{"began_ns", p.BeganNs}, {"ended_ns", show.Known(p.EndedNs)}, {"preemption_off", has(kcdata.PanicPreemptOff)}, {"interrupts_off", has(kcdata.PanicIRQOff)},
		{"tasks", p.Tasks}, {"threads", p.Threads}, {"idle", p.Idle}, {"bytes", p.Bytes}, {"room", p.Room},
		{"nested", p.Nested}, {"lost", p.Lost}, {"captures_ended", p.Live}, {"pages_absent", p.PagesAbsent}, {"pages_lost", p.PagesLost},
		{"damaged", has(kcdata.PanicTorn)}, {"stack_cut", has(kcdata.PanicStackCut)}, {"from_dump", has(kcdata.PanicFromDump)},
		{"region", p.Region}, {"generation", p.Generation},
	}
}

// cString is the text up to the first NUL.
func cString(b []byte) string {
	text, _, _ := bytes.Cut(b, []byte{0})
	return string(text)
}
