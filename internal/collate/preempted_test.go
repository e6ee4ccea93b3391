package collate

import (
	"fmt"
	"strings"
	"testing"

	"stackshot/internal/capture"
	"stackshot/internal/procfs"
)

// The way a thread was taken off its CPU is named by the machine's own symbols; what a
// module calls so is none of the kernel's.
func TestPreemptionPath(t *testing.T) {
	for stack, want := range map[string]int{
		"": 0,
		"irqentry_exit asm_sysvec_apic_timer_interrupt vfs_read ksys_read":   2,
		"irqentry_exit asm_sysvec_apic_timer_interrupt[fs] vfs_read":         1,
		"irqentry_exit[fs] asm_sysvec_apic_timer_interrupt vfs_read[fs] x_y": 0,
	} {
		var kallsyms strings.Builder
		var addrs []uint64
		seen := map[string]uint64{}
		for _, f := range strings.Fields(stack) {
			if seen[f] == 0 {
				seen[f] = 0xffffffff81000000 + uint64(len(seen))<<12
				fmt.Fprintf(&kallsyms, "%x T %s\n", seen[f], strings.Replace(f, "[", "\t[", 1))
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

// The frame of a kprobe at a function's first instruction is that function's, though it would be the one
// before it as a return address. A return address in the hooked function is named as one.
func TestHookedFrameIsNamed(t *testing.T) {
	const before, hooked, size uint64 = 0xffffffff81000000, 0xffffffff81000100, 0x100
	syms, err := procfs.ParseKallsyms(fmt.Sprintf("%x T before\n%x T vpanic\n%x T after\n", before, hooked, hooked+size))
	if err != nil {
		t.Fatal(err)
	}
	for addr, want := range map[uint64]string{hooked: "vpanic", hooked + 4: "vpanic", hooked + 9: "vpanic", hooked + size: "vpanic", before + 8: "", hooked + size + 16: ""} {
		n := &names{syms: syms, hook: &capture.Hook{Functions: []string{"vpanic"}}, exact: map[uint64]bool{}}
		in := n.inHooked(addr)
		if sym, ok := n.name(addr); in != (want != "") || in && (!ok || sym.Name != want) {
			t.Errorf("%#x: in it %v, %+v", addr, in, sym)
		}
	}
}
