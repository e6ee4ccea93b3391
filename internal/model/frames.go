package model

import (
	"strings"

	"stackshot/kcdata"
)

// kind says what part a kernel function plays when a thread leaves its CPU. A function may
// have several kinds.
type kind uint

const (
	sleep     kind = 1 << iota // the scheduler's own function: on top of every sleeper's stack, so it tells nothing
	entry                      // enters the kernel from user mode for an interrupt, or returns from it
	preempted                  // lies between a thread's own code and the schedule() that preempts it
	wayOut                     // also preempted: ends an interrupt or a system call
	interrupt                  // interrupts a thread's own code: a preemption path ends there
)

// kinds gives the kinds of functions by the begins of their names. If several begins match,
// the kinds add up. Interrupts are enabled in a wayOut function, so a second interrupt may
// come there: one may wake the worker and the other may schedule.
//
// The kernel uses the first of an address's names, and the first entry function has the same
// address as the end of the section before it (__softirqentry_text_end, 7.3).
var kinds = []struct {
	kind     kind
	prefixes []string
}{
	{sleep, []string{"io_schedule", "__switch_to", "context_switch"}},
	{sleep | entry, []string{"__schedule", "schedule"}},
	{sleep | entry | preempted, []string{"preempt_schedule"}},
	{sleep | entry | interrupt, []string{"asm_sysvec_"}},
	{sleep | preempted | wayOut, []string{"irqentry_exit"}},
	{entry, []string{"irqentry_", "el0t_64_", "el0t_32_", "el0_irq"}},
	{entry | interrupt, []string{"asm_common_interrupt"}},
	{entry | preempted, []string{"sysvec_", "ret_to_user", "el0_interrupt", "__el0_irq"}},
	{entry | preempted | wayOut, []string{"exit_to_user_mode"}},
	{preempted | wayOut, []string{"raw_irqentry_exit", "dynamic_irqentry_exit", "syscall_exit_to_user_mode"}},
	{preempted, []string{
		"__preempt_schedule", "dynamic_preempt_schedule", "arm64_preempt_schedule", "__cond_resched", "dynamic_cond_resched",
		"common_interrupt", "ret_from_intr", "do_notify_resume", "el1_interrupt", "__el1_irq",
		"el1h_64_irq_handler", "el0t_64_irq_handler", "el0t_32_irq_handler",
	}},
	{interrupt, []string{"asm_exc_", "__softirqentry_text_end", "el1h_64_irq", "el0t_64_irq", "el0t_32_irq"}},
}

func kindsOf(name string) (k kind) {
	for i := range kinds {
		for _, p := range kinds[i].prefixes {
			if name != "" && name[0] == p[0] && strings.HasPrefix(name, p) {
				k |= kinds[i].kind
			}
		}
	}
	return k
}

// SkipSleep returns frames, leaf first, without the scheduler's own functions on top. The last
// frame always stays. An address without a name could be any function, so it stays, too.
func SkipSleep(names *kcdata.SymbolTable, frames []uint64) []uint64 {
	for len(frames) > 1 {
		sym, ok := names.Name(frames[0])
		if !ok || kindsOf(sym.Name)&sleep == 0 {
			break
		}
		frames = frames[1:]
	}
	return frames
}

// OnlyEntry reports whether every frame is part of an interrupt's entry or exit. An address
// without a name could be any function, so it is not counted as part.
func OnlyEntry(names *kcdata.SymbolTable, frames []uint64) bool {
	for _, a := range frames {
		if sym, ok := names.Name(a); !ok || kindsOf(sym.Name)&entry == 0 {
			return false
		}
	}
	return true
}

// PreemptionPath is how many frames of a kernel stack, from the leaf on, belong to the
// preemption of its thread: the interrupt that woke the worker, and the schedule on the
// interrupt's return. The kernel itself leaves out the frames of the scheduler
// (in_sched_functions). The thread itself may have caused an exception, so an exception's
// entry counts only if frames of its way out stand before it. name gives the vmlinux
// function at an address; ok is false if there is none.
func PreemptionPath(stack []uint64, name func(addr uint64) (function string, ok bool)) (path int) {
	entered := false // the frame before is an interrupt's entry
	for i, addr := range stack {
		function, ok := name(addr)
		k := kindsOf(function)
		switch {
		case !ok:
			return path
		case k&preempted != 0 && (!entered || k&wayOut != 0):
			path, entered = i+1, false
		case k&interrupt != 0 && !entered && (path > 0 || !strings.HasPrefix(function, "asm_exc_")):
			path, entered = i+1, true
		default:
			return path
		}
	}
	return path
}
