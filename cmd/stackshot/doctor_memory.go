package main

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"

	"stackshot/internal/bpf"
	"stackshot/internal/show"
	"stackshot/snapshot"
)

// memory shows what auto looks at before it stops the machine with pull, and what
// decides whether user memory can be read.
func (d *doctor) memory(section string) {
	text, err := d.proc.Meminfo()
	if err == nil {
		if line, ok := lineOf(text, "MemAvailable:"); ok {
			d.good(section, "memory available", line)
		}
	}
	d.pressure(section)
	d.systemRAM(section)
	d.numaBalancing(section)
	d.memoryErrors(section, text, runtime.GOARCH)
}

func (d *doctor) pressure(section string) {
	text, err := d.proc.Pressure()
	line, ok := lineOf(text, "memory full ")
	if err != nil || !ok {
		d.good(section, "memory pressure", "not known (no /proc/pressure/memory)")
		return
	}
	line = "all tasks waited " + line
	if why := snapshot.MemoryPressure(); why != "" {
		d.bad(section, "memory pressure", line, "auto stops nothing now unless it has engine trap: "+why)
		return
	}
	d.good(section, "memory pressure", line)
}

// systemRAM: user memory is read where /proc/iomem says "System RAM", and the
// programs know a number of such ranges.
func (d *doctor) systemRAM(section string) {
	const name = "System RAM"
	b, err := readOne(d.proc, "", "iomem", maxConfig)
	if err != nil {
		d.bad(section, name, "not known: "+show.WithoutPath(err).Error(), "no user stacks")
		return
	}
	ranges, unknown, err := bpf.CountRAM(bytes.NewReader(b))
	switch {
	case err != nil:
		d.bad(section, name, "not known: "+err.Error(), "no user stacks")
	case ranges > bpf.MaxRAM:
		d.bad(section, name, fmt.Sprintf("%d ranges", ranges),
			fmt.Sprintf("the %d largest are known: what of user stacks lies in the other %s is refused", bpf.MaxRAM, show.Size(unknown)))
	default:
		d.good(section, name, fmt.Sprintf("%d ranges, of %d that can be known", ranges, bpf.MaxRAM))
	}
}

// numaBalancing takes the rights away from a page of a process for a while, to see
// who touches it (task_numa_work, kernel/sched/fair.c).
func (d *doctor) numaBalancing(section string) {
	const name = "NUMA balancing"
	switch v, ok := d.file(d.proc, "sys/kernel", "numa_balancing"); {
	case !ok:
		d.good(section, name, "not there")
	case v == "0":
		d.good(section, name, "off")
	default:
		d.bad(section, name, v+" (kernel.numa_balancing)",
			"a page that it has marked is refused until its process touches it: user stacks of sleepers may lack bytes")
	}
}

// What a load of a word does whose memory has an error that it cannot correct. amd64:
// error_context (arch/x86/kernel/cpu/mce/severity.c) takes an entry of the exception
// table for a way out only where it is of a copy from the user or marked as safe;
// entries of BPF loads, and of bpf_probe_read_kernel, are neither. arm64: do_sea
// (arch/arm64/mm/fault.c) knows no such way out for them either.
var memoryError = map[string]string{
	"amd64": "a BPF program that loads a word of memory with an uncorrectable error panics the machine",
	"arm64": "a BPF program that loads a word of memory with an uncorrectable error ends stackshot by a kernel oops",
}

// memoryErrors says what the kernel has found so far. Such pages it takes away from
// everybody; what it has not found yet is the danger.
func (d *doctor) memoryErrors(section, meminfo, arch string) {
	const name = "memory errors"
	found, ok := lineOf(meminfo, "HardwareCorrupted:")
	switch {
	case !ok:
		d.good(section, name, "not known; "+memoryError[arch])
	case strings.HasPrefix(found, "0 "):
		d.good(section, name, "none found; "+memoryError[arch])
	default:
		d.bad(section, name, found+" found (HardwareCorrupted)", "there may be more: "+memoryError[arch])
	}
}
