package main

import (
	"fmt"
	"strings"

	"stackshot/internal/arm"
	"stackshot/internal/bpf"
	"stackshot/internal/resident"
)

// panicChecks are what decides, beside the hooks, what `arm` is worth here.
var panicChecks = []check{
	{"kernel.sysrq", (*doctor).sysrqMask},
	{"crash kernel", (*doctor).crashKernel},
	{"memory encryption", (*doctor).encryption},
	{"armed", func(*doctor) finding { return armedBy() }},
}

// What is lost where an event cannot be hooked.
var hookCosts = map[string]string{
	bpf.EventSysrq: "no capture by SysRq",
	bpf.EventPanic: "a panic records nothing",
	bpf.EventCrash: "an oops that goes straight to the crash kernel records nothing",
}

// hooks attaches what `arm` attaches, for a moment.
func (d *doctor) hooks() {
	hooks, wakes, err := arm.Try()
	if err != nil {
		d.add("panic", "hooks", bad("none: "+oneLine(err), "no stackshot arm"))
		return
	}
	for _, h := range hooks {
		d.add("panic", eventWords[h.Event]+" hook", hookFinding(h, wakes))
	}
}

func hookFinding(h bpf.Hook, wakes bool) finding {
	switch {
	case h.Err != nil:
		return bad("none: "+oneLine(h.Err), hookCosts[h.Event])
	case wakes && h.Event == bpf.EventSysrq:
		return bad(h.By+"/"+h.Function+", which only wakes stackshot arm", "the key takes an ordinary capture: no program may walk the tasks (task iterators, Linux 6.7)")
	}
	return good(fmt.Sprintf("%s/%s", h.By, h.Function))
}

// sysrqMask says what becomes of a key. The kernel asks its mask after our hook has run, so the hook asks itself.
func (d *doctor) sysrqMask() finding {
	mask, ok := d.setting("sysrq")
	switch {
	case !ok:
		return bad("not there", "the kernel has no SysRq (CONFIG_MAGIC_SYSRQ)")
	case arm.LetsThrough(mask):
		return good(fmt.Sprintf("%d: keys of a keyboard and of a serial line count", mask))
	}
	return bad(fmt.Sprint(mask), "stackshot arm refuses keys of a keyboard or serial line (want 1, or bit 8); a write to /proc/sysrq-trigger counts")
}

// crashKernel says who would write a dump after a panic.
func (d *doctor) crashKernel() finding {
	switch loaded, ok := d.number(d.sys, "kernel", "kexec_crash_loaded"); {
	case !ok:
		return bad("none: the kernel cannot load one (CONFIG_CRASH_DUMP)", "after a panic only a hypervisor can write the memory into a dump")
	case loaded == 0:
		return bad("not loaded", "after a panic only a hypervisor can write the memory into a dump (see kdump-tools)")
	}
	return good("loaded")
}

// encryption says whether memory is encrypted. Page table entries of this process show it for
// AMD's SME and SEV; a guest of Intel's TDX has a flag of its CPU.
func (d *doctor) encryption() finding {
	const cost = "a dump that the host makes, or of raw memory, cannot be read; one that a crash kernel of this machine makes can, if it has the key"
	if text, _ := d.file(d.proc, "", "cpuinfo"); hasFlag(text, "tdx_guest") {
		return bad("a TDX guest", cost)
	}
	m, err := bpf.FindDirectMap()
	switch {
	case err != nil:
		return unknown(err)
	case m.Encryption != 0:
		return bad(fmt.Sprintf("on (bit %#x of page table entries: SME or SEV)", m.Encryption), cost)
	}
	return good("none that page tables show")
}

func hasFlag(cpuinfo, flag string) bool {
	flags, _ := lineOf(cpuinfo, "flags")
	return strings.Contains(" "+flags+" ", " "+flag+" ")
}

func armedBy() finding {
	h, err := resident.Running(resident.Path)
	switch {
	case err != nil:
		return unknown(err)
	case h == nil:
		return good("no")
	}
	return good("by " + h.String())
}
