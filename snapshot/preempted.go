package snapshot

import (
	"strings"

	"stackshot/internal/show"
	"stackshot/kcdata"
)

// A thread that the stop took off its CPU has the way it was taken on top of its
// stack: the interrupt that brought the worker, and the schedule on its return.
// Its stack in the file begins where the thread was. Frames of the scheduler
// itself the kernel leaves out already (in_sched_functions).

// preemptedIn begin the names of functions between a thread and the schedule that
// another made it enter; interruptEntries those of what took it out of its own
// code, where the path ends.
var preemptedIn = append([]string{
	"preempt_schedule", "__preempt_schedule", "dynamic_preempt_schedule", "__cond_resched", "dynamic_cond_resched",
	"sysvec_", "common_interrupt", "ret_from_intr",
	"arm64_preempt_schedule", "do_notify_resume", "ret_to_user", "el1_interrupt", "el0_interrupt", "__el0_irq", "__el1_irq",
	"el1h_64_irq_handler", "el0t_64_irq_handler", "el0t_32_irq_handler",
}, wayOut...)

// wayOut begin those of them that end an interrupt or a system call. They let
// interrupts in: the wake of the worker and the schedule may be of two, one in the
// other.
var wayOut = []string{
	"irqentry_exit", "raw_irqentry_exit", "dynamic_irqentry_exit", "exit_to_user_mode", "syscall_exit_to_user_mode",
}

// interruptEntries begin the names of what takes a thread out of its own code. The
// kernel names an address by the first of its names, and the first entry function
// shares its own with the end of the section before (7.3).
var interruptEntries = []string{
	"__softirqentry_text_end", "asm_sysvec_", "asm_common_interrupt", "asm_exc_", "el1h_64_irq", "el0t_64_irq", "el0t_32_irq",
}

// preemptionPath is how many frames from the leaf on are the way a thread was
// taken off its CPU. An exception's entry alone may be the thread's own doing:
// it counts only behind the way out of it.
func (n *names) preemptionPath(stack []uint64) (path int) {
	entered := false // the frame before is an interrupt's entry
	for i, addr := range stack {
		sym, ok := n.name(addr)
		switch {
		case !ok || sym.Module != "":
			return path
		case show.HasPrefix(sym.Name, preemptedIn) && (!entered || show.HasPrefix(sym.Name, wayOut)):
			path, entered = i+1, false
		case show.HasPrefix(sym.Name, interruptEntries) && !entered && (path > 0 || !strings.HasPrefix(sym.Name, "asm_exc_")):
			path, entered = i+1, true
		default:
			return path
		}
	}
	return path
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
