package main

import (
	"runtime"
	"strconv"
	"strings"

	"stackshot/internal/procfs"
	"stackshot/internal/show"
	"stackshot/internal/timens"
)

// check finds out one fact.
type check struct {
	name string
	look func(d *doctor) finding
}

// finding is what a check found: a value, and what a capture loses by it ("" for nothing).
// The zero value stands for no fact at all.
type finding struct{ value, cost string }

func good(value string) finding      { return finding{value, ""} }
func bad(value, cost string) finding { return finding{value, cost} }

// unknown says why something could not be found out, which costs nothing.
func unknown(err error) finding { return good("not known: " + err.Error()) }

// Facts in the order in which they are shown. The capabilities come after those of the
// kernel, the CPUs before those of the machine (doctor.examine).
var (
	kernelChecks = []check{
		{"BTF", (*doctor).btf},
		{"lockdown", (*doctor).lockdown},
		{"kptr_restrict", (*doctor).symbols},
		{"perf_event_max_stack", (*doctor).stackDepth},
		{"perf_event_paranoid", func(d *doctor) finding { return d.notForUs("perf_event_paranoid") }},
		{"unprivileged_bpf_disabled", func(d *doctor) finding { return d.notForUs("unprivileged_bpf_disabled") }},
		{"RT_GROUP_SCHED", (*doctor).rtGroups},
		{"open files", (*doctor).openFiles},
		{"file locks", (*doctor).fileLocks},
	}
	machineChecks = []check{
		{"KVM guests", (*doctor).guests},
		{"virtual machine", (*doctor).virtual},
		{"pid namespace", (*doctor).pidNamespace},
		{"time namespace", func(*doctor) finding { return timeNamespace(timens.Monotonic, timens.Boottime, timens.Err) }},
		{"memory available", func(d *doctor) finding { return good(d.meminfo("MemAvailable:")) }},
		{"memory pressure", (*doctor).pressure},
		{"System RAM", (*doctor).systemRAM},
		{"NUMA balancing", (*doctor).numaBalancing},
		{"memory errors", func(d *doctor) finding { return memoryErrors(d.meminfo("HardwareCorrupted:"), runtime.GOARCH) }},
		{"lock", (*doctor).lock},
		{"/run", (*doctor).runDir},
	}
	stopChecks = []check{
		{"clock source", (*doctor).clockSource},
		{"hard lockup detector", (*doctor).hardLockup},
		{"soft lockup detector", (*doctor).softLockup},
		{"RCU stall", (*doctor).rcuStall},
	}
)

func (d *doctor) run(section string, checks []check) {
	for _, c := range checks {
		d.add(section, c.name, c.look(d))
	}
}

// add files a fact.
func (d *doctor) add(section, name string, f finding) {
	if f.value != "" {
		d.Facts = append(d.Facts, fact{section, name, show.Clean(f.value), f.cost == "", show.Clean(f.cost)})
	}
}

// Sizes at which files that doctor reads are cut, in bytes.
const (
	maxSmall  = 64 << 10
	maxConfig = 4 << 20
)

// readHead reads the first limit bytes of a file. Its errors do not hold the path.
func readHead(root procfs.FS, dir, name string, limit int) ([]byte, error) {
	files := []procfs.File{{Name: name, Max: limit}}
	root.Read(dir, files)
	if err := files[0].Err; err != nil {
		return nil, show.WithoutPath(err)
	}
	return files[0].Data, nil
}

// file reads a small file, without the blanks around its text.
func (d *doctor) file(root procfs.FS, dir, name string) (text string, ok bool) {
	b, err := readHead(root, dir, name, maxSmall)
	return strings.TrimSpace(string(b)), err == nil
}

// number reads a file that holds one number.
func (d *doctor) number(root procfs.FS, dir, name string) (value int, ok bool) {
	text, _ := d.file(root, dir, name)
	value, err := strconv.Atoi(text)
	return value, err == nil
}

// setting reads a number from /proc/sys/kernel.
func (d *doctor) setting(name string) (value int, ok bool) {
	return d.number(d.proc, "sys/kernel", name)
}

// meminfo is the value in a line of /proc/meminfo; "" where there is no such line.
func (d *doctor) meminfo(name string) string {
	text, _ := d.file(d.proc, "", "meminfo")
	value, _ := lineOf(text, name)
	return value
}

// lineOf is what follows the prefix in the first line that begins with it.
func lineOf(text, prefix string) (rest string, ok bool) {
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, prefix); ok {
			return strings.TrimSpace(rest), true
		}
	}
	return "", false
}
