package collate

import (
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

// cutStack takes the first frames off a thread's stack. What is left of the item
// comes from where it lies, so after redaction.
func (t *taskBytes) cutStack(th *threadAt, frames int) error {
	left := kcdata.Elements[uint64](th.kernel.Item())[frames:]
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
