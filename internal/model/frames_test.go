package model

import (
	"strings"
	"testing"

	"stackshot/kcdata"
)

// The way a thread was taken off its CPU ends where the thread was, however
// many interrupts lie in each other on it.
func TestPreemptionPath(t *testing.T) {
	for stack, want := range map[string]int{
		"": 0,
		"irqentry_exit_to_user_mode asm_sysvec_reschedule_ipi":                                        2,
		"irqentry_exit __softirqentry_text_end vfs_read ksys_read":                                    2,
		"irqentry_exit asm_sysvec_apic_timer_interrupt vfs_read ksys_read":                            2,
		"irqentry_exit asm_sysvec_apic_timer_interrupt irqentry_exit asm_sysvec_call_function_single": 4,
		"irqentry_exit asm_sysvec_x exit_to_user_mode_loop do_syscall_64 entry_SYSCALL_64":            3,
		"exit_to_user_mode_loop do_syscall_64 entry_SYSCALL_64":                                       1,
		"irqentry_exit asm_sysvec_x task_work_run irqentry_exit asm_sysvec_y":                         2,
		"irqentry_exit asm_sysvec_x asm_exc_page_fault":                                               2,
		"irqentry_exit asm_exc_page_fault":                                                            2,
		"asm_exc_page_fault":                                                                          0,
		"irqentry_exit asm_sysvec_x __cond_resched shrink_slab":                                       2,
		"__cond_resched shrink_slab":                                                                  1,
		"el1_interrupt el1h_64_irq_handler el1h_64_irq exit_to_user_mode el0_svc":                     4,
		"do_nanosleep hrtimer_nanosleep":                                                              0,
	} {
		functions := strings.Fields(stack)
		addrs := make([]uint64, len(functions))
		for i := range addrs {
			addrs[i] = uint64(i)
		}
		got := PreemptionPath(addrs, func(addr uint64) (string, bool) { return functions[addr], true })
		if got != want {
			t.Errorf("%s: %d frames, want %d", stack, got, want)
		}
	}
}

// names are a table of functions at 0x10, 0x20 and so on; "?" has no name.
func names(functions ...string) (*kcdata.SymbolTable, []uint64) {
	strs, addrs := []byte{0}, []uint64{}
	var records []kcdata.LinuxSymbol
	for i, f := range functions {
		addrs = append(addrs, uint64(i+1)*0x10)
		if f != "?" {
			records = append(records, kcdata.LinuxSymbol{Addr: addrs[i], Name: uint32(len(strs))})
			strs = append(append(strs, f...), 0)
		}
	}
	return kcdata.NewSymbolTable(records, strs), addrs
}

// What is skipped on top of a sleeper's stack, and which stacks are an interrupt's alone.
func TestKindsOfFrames(t *testing.T) {
	for stack, want := range map[string]struct {
		skip int
		only bool
	}{
		"":                                     {0, true},
		"__schedule schedule futex_wait_queue": {2, false},
		"__schedule schedule":                  {1, true},
		"schedule_timeout io_schedule ep_poll": {2, false},
		"__schedule ? ep_poll":                 {1, false},
		"?":                                    {0, false},
		"irqentry_exit asm_sysvec_reschedule_ipi read": {2, false},
		"irqentry_exit asm_sysvec_reschedule_ipi":      {1, true},
		"irqentry_enter asm_common_interrupt":          {0, true},
		"preempt_schedule_irq el1_interrupt":           {1, false},
		"el0t_64_irq_handler el0t_64_irq":              {0, true},
	} {
		table, addrs := names(strings.Fields(stack)...)
		if got := len(addrs) - len(SkipSleep(table, addrs)); got != want.skip {
			t.Errorf("%s: %d frames skipped, want %d", stack, got, want.skip)
		}
		if got := OnlyEntry(table, addrs); got != want.only {
			t.Errorf("%s: only the entry: %v", stack, got)
		}
	}
}
