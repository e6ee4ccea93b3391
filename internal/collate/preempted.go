package collate

import (
	"stackshot/internal/model"
	"stackshot/kcdata"
)

// A thread that the stop took off its CPU has the way it was taken on top of its
// stack: the interrupt that brought the worker, and the schedule on its return.
// Its stack in the file begins where the thread was.

// preemptionPath is how many frames from the leaf on are the way a thread was
// taken off its CPU.
func (n *names) preemptionPath(stack []uint64) int {
	return model.PreemptionPath(stack, func(addr uint64) (string, bool) {
		sym, ok := n.name(addr)
		return sym.Name, ok && sym.Module == ""
	})
}

// cutStack takes the first frames off a thread's stack. What is left of the item
// comes from where it lies, so after redaction.
func (t *TaskBytes) cutStack(th *ThreadAt, frames int) error {
	left := kcdata.Elements[uint64](th.kernel.Item())[frames:]
	w := kcdata.NewBuffer(0)
	if len(left) > 0 {
		if err := w.Uint64s(kcdata.TypeKernStackLR64, left); err != nil {
			return err
		}
	}
	t.Items.Replace(th.kernel, w.Written())
	return kcdata.Patch(th.linux, func(lx *kcdata.LinuxThread) {
		lx.KstackDepth, lx.KstackSkipped = uint32(len(left)), uint32(frames)
	})
}
