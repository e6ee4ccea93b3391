package report

import (
	"cmp"
	"fmt"
	"strings"

	"stackshot/internal/account"
	"stackshot/internal/model"
	"stackshot/internal/show"
	"stackshot/kcdata"
)

// ranMeanwhile is the kstack_err of a thread that ran while it was recorded: EBUSY.
const ranMeanwhile = 16

// stackNote says why a thread has no stack, or what kind of stack it has, and
// whether its frames are worth showing.
func (v *view) stackNote(t *kcdata.Thread, st model.State) (note string, frames bool) {
	note, frames = v.plainNote(t, st)
	if here := account.PanicMark(v.s, t); here != "" {
		note = strings.TrimSuffix(here+", "+note, ", ")
	}
	return note, frames
}

func (v *view) plainNote(t *kcdata.Thread, st model.State) (note string, frames bool) {
	l := &t.Linux
	switch {
	case l.Present&kcdata.ThreadNeverRan != 0:
		return "never ran", false
	case t.Sample != nil && t.Sample.User != 0 && model.OnlyEntry(v.s.Symbols, t.Kernel):
		return "in user mode", false
	case len(t.Kernel) > 0:
		return v.kindOfStack(t, st)
	case st.Class == model.Zombie:
		return "no stack", false
	case st.Class == model.Running && !v.stopped[uint64(l.CPU)]:
		return "no stack: its CPU was not stopped", false
	case l.Present&kcdata.ThreadUserMode != 0 && st.Class.WantsCPU():
		return "in user mode", false
	case l.KstackErr == ranMeanwhile:
		return "no stack: it was running", false
	case l.KstackErr != 0:
		return "no stack: the unwinder failed, " + errnoName(l.KstackErr), false
	case t.Wchan != "" && t.Wchan != "0":
		return "no kernel stack recorded, waits in " + show.Clean(t.Wchan), false
	case l.Present&kcdata.ThreadHasStack == 0:
		return "no kernel stack recorded", false
	}
	return "no stack: the unwinder found no frames", false
}

// kindOfStack tells frames of a system call from frames of an interrupt. If a thread
// was taken in user mode, its kernel stack holds only the path by which it was taken.
// That path says nothing about the thread and is not shown.
func (v *view) kindOfStack(t *kcdata.Thread, st model.State) (note string, frames bool) {
	p := t.Linux.Present
	switch {
	case p&kcdata.ThreadUserMode != 0 && st.Class.WantsCPU() && model.OnlyEntry(v.s.Symbols, t.Kernel):
		return "in user mode", false
	case p&kcdata.ThreadTruncated != 0:
		return "stack cut: it is deeper than what was recorded", true
	case p&kcdata.ThreadUserMode != 0 && st.Class != model.Held: // arm64 forgets a stopped thread's call
		return "in a fault or an interrupt, not a system call", true
	}
	return "", true
}

// frame writes one address as "name+0x1f [module]", or as a number if it has no name. mixed:
// the threads of a group have several offsets here, and none is written.
func (v *view) frame(addr uint64, mixed bool) string {
	sym, ok := v.s.Symbols.Name(addr)
	if !ok {
		return fmt.Sprintf("0x%016x", addr)
	}
	s := show.Clean(sym.Name)
	if !mixed {
		s += fmt.Sprintf("+%#x", sym.Offset)
	}
	if sym.Module != "" {
		s += " [" + show.Clean(sym.Module) + "]"
	}
	return s
}

// kernelName is the name of the function at an address, else the address.
func (v *view) kernelName(addr uint64) string {
	if sym, ok := v.s.Symbols.Name(addr); ok {
		return show.Clean(sym.Name)
	}
	return fmt.Sprintf("%#x", addr)
}

// errnoName names the errors of an unwinder or a read. The numbers are those of Linux
// on amd64 and arm64, whatever this program runs on.
func errnoName(e int32) string {
	e = max(e, -e) // kernel code returns them negative
	names := map[int32]string{
		1: "EPERM", 2: "ENOENT", 3: "ESRCH", 4: "EINTR", 5: "EIO", 7: "E2BIG", 11: "EAGAIN", 12: "ENOMEM",
		13: "EACCES", 14: "EFAULT", 16: "EBUSY", 22: "EINVAL", 28: "ENOSPC", 62: "ETIME", 95: "EOPNOTSUPP", 110: "ETIMEDOUT",
	}
	return cmp.Or(names[e], fmt.Sprintf("errno %d", e))
}
