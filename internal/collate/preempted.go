package collate

import (
	"slices"

	"stackshot/internal/model"
	"stackshot/kcdata"
)

// When the stop takes a thread off its CPU, the leaf frames of the thread's stack show how:
// the interrupt that brought the worker, and the schedule() on its return. These frames
// are cut, so that the stack in the file begins where the thread was.

// preemptionPath is how many frames, from the leaf on, belong to the preemption.
func (n *names) preemptionPath(stack []uint64) int {
	return model.PreemptionPath(stack, func(addr uint64) (string, bool) {
		sym, ok := n.name(addr)
		return sym.Name, ok && sym.Module == ""
	})
}

// cutStack takes the first frames off a thread's stack, and puts callers behind the first one that is
// left. What is left of the item comes from where it lies, so after redaction.
func (t *taskBytes) cutStack(th *threadAt, frames int, callers []uint64) error {
	left := kcdata.Elements[uint64](th.kernel.Item())[frames:]
	if len(left) > 0 {
		left = slices.Insert(left, 1, callers...)
	}
	w := kcdata.NewBuffer(0)
	if len(left) > 0 {
		if err := w.Uint64s(kcdata.TypeKernStackLR64, left); err != nil {
			return err
		}
	}
	t.items.Replace(th.kernel, w.Written())
	return kcdata.Patch(th.linux, func(lx *kcdata.LinuxThread) {
		lx.KstackDepth, lx.KstackSkipped = uint32(len(left)), uint32(frames)
	})
}

// hookPath is how many frames of the thread that was in a hook belong to the hook: those from
// the leaf to the first one in the hooked function. caller is what comes behind that one, where a kprobe's stack
// lacks it, as the file shows it. 0: another thread, or no such frame.
func (n *names) hookPath(th *threadAt) (cut int, caller []uint64) {
	if th.id != n.hook.Thread || th.linux.IsZero() {
		return 0, nil
	}
	for i, addr := range kcdata.Elements[uint64](th.kernel.Item()) {
		if !n.inHooked(addr) {
			continue
		}
		n.hook.Cut = true
		if n.hook.Caller != 0 {
			caller = []uint64{n.note(n.hook.Caller)}
		}
		return i, caller
	}
	return 0, nil
}

// inHooked looks at the address itself too: a kprobe at a function's first instruction has no call before it.
// That frame is named as where the thread was.
func (n *names) inHooked(addr uint64) bool {
	if n.syms == nil {
		return false
	}
	if back, ok := n.syms.ResolveReturn(addr); ok && slices.Contains(n.hook.Functions, back.Name) {
		return true
	}
	at, ok := n.syms.Resolve(addr)
	if !ok || at.Offset >= 8 || !slices.Contains(n.hook.Functions, at.Name) {
		return false
	}
	n.exact[addr] = true
	return true
}
