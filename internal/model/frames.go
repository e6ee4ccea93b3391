package model

import (
	"strings"

	"stackshot/kcdata"
)

// kind says what a kernel function has to do with how a thread came off its CPU. A
// function may be of several kinds.
type kind uint

const (
	sleep     kind = 1 << iota // the scheduler's own: every sleeper has them on top, and they distinguish nobody
	entry                      // takes a thread out of user mode for an interrupt, or puts it back
	preempted                  // stands between a thread and the schedule that another made it enter
	wayOut                     // of preempted: ends an interrupt or a system call
	interrupt                  // takes a thread out of its own code: there the way of a preemption ends
)

// kinds are the functions whose names begin so; of names that begin with several, the kinds
// add up. wayOut lets interrupts in: the wake of the worker and the schedule may be of two
// interrupts, one in the other.
//
// The kernel names an address by the first of its names, and the first entry function
// shares its own with the end of the section before (__softirqentry_text_end, 7.3).
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

// SkipSleep returns frames, leaf first, without the scheduler's own on top; the
// last frame stays whatever it is. An address without a name could be anything.
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

// OnlyEntry reports whether every frame is part of an interrupt's entry and
// exit. An address without a name could be anything.
func OnlyEntry(names *kcdata.SymbolTable, frames []uint64) bool {
	for _, a := range frames {
		if sym, ok := names.Name(a); !ok || kindsOf(sym.Name)&entry == 0 {
			return false
		}
	}
	return true
}

// PreemptionPath is how many frames of a kernel stack, from the leaf on, are the way its
// thread was taken off its CPU: the interrupt that brought the worker, and the schedule on
// its return. Frames of the scheduler itself the kernel leaves out already
// (in_sched_functions). An exception's entry alone may be the thread's own doing: it
// counts only behind the way out of it. name gives the function of vmlinux at an address;
// ok is false where there is none.
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
