package snapshot

import (
	"fmt"
	"strings"
	"testing"

	"stackshot/internal/procfs"
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
		var kallsyms strings.Builder
		var addrs []uint64
		seen := map[string]uint64{}
		for _, f := range strings.Fields(stack) {
			if seen[f] == 0 {
				seen[f] = 0xffffffff81000000 + uint64(len(seen))<<12
				fmt.Fprintf(&kallsyms, "%x T %s\n", seen[f], f)
			}
			addrs = append(addrs, seen[f]+16)
		}
		n := &names{exact: map[uint64]bool{}}
		if stack != "" {
			var err error
			if n.syms, err = procfs.ParseKallsyms(kallsyms.String()); err != nil {
				t.Fatal(err)
			}
		}
		if got := n.preemptionPath(addrs); got != want {
			t.Errorf("%s: %d frames, want %d", stack, got, want)
		}
	}
}
