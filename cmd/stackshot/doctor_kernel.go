package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"strings"

	"golang.org/x/sys/unix"

	"stackshot/internal/bpf"
	"stackshot/internal/procfs"
	"stackshot/internal/show"
	"stackshot/snapshot"
)

// Sizes at which files of doctor's are cut.
const (
	maxSmall  = 64 << 10
	maxConfig = 4 << 20
)

// file reads a small file, without the blanks around its text.
func (d *doctor) file(root procfs.FS, dir, name string) (text string, ok bool) {
	b, err := readOne(root, dir, name, maxSmall)
	return strings.TrimSpace(string(b)), err == nil
}

func readOne(root procfs.FS, dir, name string, limit int) ([]byte, error) {
	files := []procfs.File{{Name: name, Max: limit}}
	root.Read(dir, files)
	return files[0].Data, files[0].Err
}

// kernel lists what the kernel was built with and set to.
func (d *doctor) kernel() {
	const section = "kernel"
	var u unix.Utsname
	if err := unix.Uname(&u); err == nil {
		d.Host = cleanField(u.Nodename[:])
		d.Release = cleanField(u.Release[:])
		d.Arch = cleanField(u.Machine[:])
		d.good(section, "version", unix.ByteSliceToString(u.Version[:]))
	}
	d.btf(section)
	d.lockdown(section)
	d.symbols(section)
	d.stackDepth(section)
	for _, name := range []string{"perf_event_paranoid", "unprivileged_bpf_disabled"} {
		if v, ok := d.file(d.proc, "sys/kernel", name); ok {
			d.good(section, name, v+" (does not bind CAP_PERFMON and CAP_BPF)")
		} else {
			d.good(section, name, "not there")
		}
	}
	d.rtGroups(section)
}

func (d *doctor) btf(section string) {
	files := []procfs.File{{Name: "vmlinux", Max: 2}}
	d.sys.Read("kernel/btf", files)
	if err := files[0].Err; err != nil {
		d.bad(section, "BTF", "no /sys/kernel/btf/vmlinux ("+show.WithoutPath(err).Error()+")", "no engine trap or pull (CONFIG_DEBUG_INFO_BTF)")
		return
	}
	d.good(section, "BTF", "/sys/kernel/btf/vmlinux")
}

func (d *doctor) lockdown(section string) {
	text, ok := d.file(d.sys, "kernel/security", "lockdown")
	switch {
	case !ok:
		if set, source := d.config("CONFIG_SECURITY_LOCKDOWN_LSM"); source != "" && !set {
			d.good(section, "lockdown", "none ("+source+")")
			return
		}
		d.good(section, "lockdown", "not known (no /sys/kernel/security/lockdown: securityfs may not be mounted)")
	case strings.Contains(text, "[confidentiality]"):
		d.bad(section, "lockdown", text, "BPF may not read the kernel's memory, so no engine trap or pull")
	default:
		d.good(section, "lockdown", text)
	}
}

// symbols says whether kernel addresses get names.
func (d *doctor) symbols(section string) {
	restrict, ok := d.file(d.proc, "sys/kernel", "kptr_restrict")
	if !ok {
		restrict = "not readable"
	}
	k, err := procfs.ReadKallsyms("/proc")
	switch {
	case err != nil:
		d.bad(section, "kptr_restrict", restrict, "no kernel symbols: "+show.WithoutPath(err).Error())
	case k.Hidden():
		d.bad(section, "kptr_restrict", restrict, "/proc/kallsyms hides addresses: kernel frames stay numbers")
	default:
		d.good(section, "kptr_restrict", fmt.Sprintf("%s (/proc/kallsyms shows %d functions)", restrict, k.Len()))
	}
}

func (d *doctor) stackDepth(section string) {
	depth := bpf.StackDepth()
	value := fmt.Sprintf("%d frames of a kernel stack are recorded", depth)
	if text, ok := d.file(d.proc, "sys/kernel", "perf_event_max_stack"); ok {
		value = text + ", " + value
	}
	d.good(section, "perf_event_max_stack", value)
}

// rtGroups: with CONFIG_RT_GROUP_SCHED a control group without a real-time
// budget may not have SCHED_FIFO threads, root or not. What counts is whether
// isolation fifo works.
func (d *doctor) rtGroups(section string) {
	set, source := d.config("CONFIG_RT_GROUP_SCHED")
	switch {
	case source == "":
		d.good(section, "RT_GROUP_SCHED", "not known (no /proc/config.gz, no /boot/config-"+d.Release+")")
	case !set:
		d.good(section, "RT_GROUP_SCHED", "no ("+source+")")
	case snapshot.TryFIFO() == nil:
		d.good(section, "RT_GROUP_SCHED", "yes ("+source+"), and this control group has a real-time budget")
	case !mayNice():
		d.good(section, "RT_GROUP_SCHED", "yes ("+source+"); without CAP_SYS_NICE the control group's real-time budget cannot be tried")
	default:
		d.bad(section, "RT_GROUP_SCHED", "yes ("+source+")", "this control group may have no real-time budget (cpu.rt_runtime_us)")
	}
}

// mayNice tells whether CAP_SYS_NICE is effective, so that a refusal has another cause.
func mayNice() bool {
	have, err := effective()
	return err == nil && have&(1<<unix.CAP_SYS_NICE) != 0
}

// config looks an option up in the kernel's configuration. source "": there is
// none to read.
func (d *doctor) config(name string) (set bool, source string) {
	if b, err := readOne(d.proc, "", "config.gz", maxConfig); err == nil {
		if text, err := gunzip(b); err == nil {
			return isSet(text, name), "/proc/config.gz"
		}
	}
	file := "config-" + d.Release
	if b, err := readOne(d.boot, "", file, maxConfig); err == nil {
		return isSet(b, name), "/boot/" + file
	}
	return false, ""
}

func gunzip(b []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(r, maxConfig))
}

func isSet(config []byte, name string) bool {
	for line := range bytes.Lines(config) {
		if value, ok := bytes.CutPrefix(line, []byte(name+"=")); ok {
			return bytes.HasPrefix(value, []byte("y")) || bytes.HasPrefix(value, []byte("m"))
		}
	}
	return false
}
