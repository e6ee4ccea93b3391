package snapshot

import (
	"encoding/binary"

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
// comes from the body, so after redaction.
func (t *taskBytes) cutStack(th *threadAt, frames int) error {
	left := th.kernel.count - frames
	var put []byte
	if left > 0 {
		w, bytes := newSection()
		w.note(w.Uint64s(kcdata.TypeKernStackLR64, t.addresses(th.kernel)[frames:]))
		if w.err != nil {
			return w.err
		}
		put = bytes()
	}
	off, size := th.kernel.item()
	t.replace(off, size, put)
	var lx kcdata.LinuxThread
	if err := kcdata.Unmarshal(t.body[th.linux:], &lx); err != nil {
		return err
	}
	lx.KstackDepth, lx.KstackSkipped = uint32(left), uint32(frames)
	kcdata.Marshal(t.body[th.linux:th.linux], &lx)
	return nil
}

func (t *taskBytes) addresses(s stackAt) []uint64 {
	out := make([]uint64, s.count)
	for i := range out {
		out[i] = binary.LittleEndian.Uint64(t.frame(s, i))
	}
	return out
}
