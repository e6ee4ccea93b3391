package latency

import (
	"fmt"

	"stackshot/internal/show"
	"stackshot/kcdata"
)

// sleepPrefixes begin the names of the scheduler's own functions: every
// sleeper has them on top and they distinguish nobody.
var sleepPrefixes = []string{
	"__schedule", "schedule", "io_schedule", "preempt_schedule", "__switch_to", "irqentry_exit", "asm_sysvec_", "context_switch",
}

// SkipSleep returns frames, leaf first, without the scheduler's own on top; the
// last frame stays whatever it is. An address without a name could be anything.
func SkipSleep(names *kcdata.SymbolTable, frames []uint64) []uint64 {
	for len(frames) > 1 {
		sym, ok := names.Name(frames[0])
		if !ok || !show.HasPrefix(sym.Name, sleepPrefixes) {
			break
		}
		frames = frames[1:]
	}
	return frames
}

// place is where in the kernel a thread sleeps: the first frame that
// distinguishes it, else the symbol that /proc gave; "" where nobody knows.
func place(s *kcdata.Snapshot, th *kcdata.Thread) string {
	frames := SkipSleep(s.Symbols, th.Kernel)
	if len(frames) == 0 {
		if th.Wchan == "0" {
			return ""
		}
		return show.Clean(th.Wchan)
	}
	if sym, ok := s.Symbols.Name(frames[0]); ok {
		return show.Clean(sym.Name)
	}
	return fmt.Sprintf("%#x", frames[0])
}
