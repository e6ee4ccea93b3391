package main

import (
	"bytes"
	"fmt"
	"strings"

	"stackshot/internal/bpf"
	"stackshot/internal/show"
	"stackshot/snapshot"
)

// pressure is what auto looks at before it stops the machine with engine pull.
func (d *doctor) pressure() finding {
	text, err := d.proc.Pressure()
	line, ok := lineOf(text, "memory full ")
	if err != nil || !ok {
		return good("not known (no /proc/pressure/memory)")
	}
	line = "all tasks waited " + line
	if why := snapshot.MemoryPressure(); why != "" {
		return bad(line, "auto stops nothing now unless it has engine trap: "+why)
	}
	return good(line)
}

// systemRAM: user memory is read where /proc/iomem says "System RAM", and the BPF programs
// have room for a limited number of such ranges.
func (d *doctor) systemRAM() finding {
	b, err := readHead(d.proc, "", "iomem", maxConfig)
	if err != nil {
		return bad("not known: "+err.Error(), "no user stacks")
	}
	ranges, unknown, err := bpf.CountRAM(bytes.NewReader(b))
	switch {
	case err != nil:
		return bad("not known: "+err.Error(), "no user stacks")
	case ranges > bpf.MaxRAM:
		return bad(fmt.Sprintf("%d ranges", ranges),
			fmt.Sprintf("the %d largest are known: parts of user stacks that lie in the other %s are not read", bpf.MaxRAM, show.Size(unknown)))
	}
	return good(fmt.Sprintf("%d ranges, of at most %d", ranges, bpf.MaxRAM))
}

// numaBalancing: the kernel takes the rights away from a page of a process for a while, to
// see who touches it (task_numa_work, kernel/sched/fair.c).
func (d *doctor) numaBalancing() finding {
	switch v, ok := d.file(d.proc, "sys/kernel", "numa_balancing"); {
	case !ok:
		return good("not there")
	case v == "0":
		return good("off")
	default:
		return bad(v+" (kernel.numa_balancing)",
			"a page that it has marked is refused until its process touches it: user stacks of sleepers may lack bytes")
	}
}

// What happens when a program loads a word of memory that has an uncorrectable error. amd64:
// error_context (arch/x86/kernel/cpu/mce/severity.c) recovers by an entry of the exception
// table only where that entry is of a copy from user space or is marked as safe; entries of
// BPF loads, and of bpf_probe_read_kernel, are neither. arm64: do_sea (arch/arm64/mm/fault.c)
// does not recover by them either.
var memoryError = map[string]string{
	"amd64": "a BPF program that loads a word of memory with an uncorrectable error panics the machine",
	"arm64": "a BPF program that loads a word of memory with an uncorrectable error ends stackshot by a kernel oops",
}

// memoryErrors says what the kernel has found so far, by the line HardwareCorrupted of
// /proc/meminfo. The kernel takes such pages away from everybody; the danger is in those
// that it has not found yet.
func memoryErrors(corrupted, arch string) finding {
	switch {
	case corrupted == "":
		return good("not known; " + memoryError[arch])
	case strings.HasPrefix(corrupted, "0 "):
		return good("none found; " + memoryError[arch])
	}
	return bad(corrupted+" found (HardwareCorrupted)", "there may be more: "+memoryError[arch])
}
