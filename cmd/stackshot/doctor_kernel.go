package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"strings"

	"golang.org/x/sys/unix"

	"stackshot/internal/bpf"
	"stackshot/internal/limits"
	"stackshot/internal/procfs"
	"stackshot/internal/show"
	"stackshot/snapshot"
)

// uname fills in which machine and kernel this is.
func (d *doctor) uname() {
	var u unix.Utsname
	unix.Uname(&u) // a valid pointer is all that it asks for
	clean := func(b []byte) string { return show.Clean(unix.ByteSliceToString(b)) }
	d.Host, d.Release, d.Arch = clean(u.Nodename[:]), clean(u.Release[:]), clean(u.Machine[:])
	d.add("kernel", "version", good(unix.ByteSliceToString(u.Version[:])))
}

func (d *doctor) btf() finding {
	if _, err := readHead(d.sys, "kernel/btf", "vmlinux", 2); err != nil {
		return bad("no /sys/kernel/btf/vmlinux ("+err.Error()+")", "no engine trap or pull (CONFIG_DEBUG_INFO_BTF)")
	}
	return good("/sys/kernel/btf/vmlinux")
}

func (d *doctor) lockdown() finding {
	text, ok := d.file(d.sys, "kernel/security", "lockdown")
	if strings.Contains(text, "[confidentiality]") {
		return bad(text, "BPF may not read the kernel's memory, so no engine trap or pull")
	}
	if ok {
		return good(text)
	}
	if set, source := d.config("CONFIG_SECURITY_LOCKDOWN_LSM"); source != "" && !set {
		return good("none (" + source + ")")
	}
	return good("not known (no /sys/kernel/security/lockdown: securityfs may not be mounted)")
}

// symbols says whether kernel addresses get names.
func (d *doctor) symbols() finding {
	restrict, ok := d.file(d.proc, "sys/kernel", "kptr_restrict")
	if !ok {
		restrict = "not readable"
	}
	k, err := procfs.ReadKallsyms("/proc")
	switch {
	case err != nil:
		return bad(restrict, "no kernel symbols: "+show.WithoutPath(err).Error())
	case k.Hidden():
		return bad(restrict, "/proc/kallsyms hides addresses: kernel frames stay numbers")
	}
	return good(fmt.Sprintf("%s (/proc/kallsyms shows %d functions)", restrict, k.Len()))
}

func (d *doctor) stackDepth() finding {
	value := fmt.Sprintf("%d frames of a kernel stack are recorded", bpf.StackDepth())
	if text, ok := d.file(d.proc, "sys/kernel", "perf_event_max_stack"); ok {
		value = text + ", " + value
	}
	return good(value)
}

// notForUs shows a setting that is often blamed, and does not bind who has the capabilities.
func (d *doctor) notForUs(setting string) finding {
	if v, ok := d.file(d.proc, "sys/kernel", setting); ok {
		return good(v + " (does not bind CAP_PERFMON and CAP_BPF)")
	}
	return good("not there")
}

// rtGroups: with CONFIG_RT_GROUP_SCHED a control group without a real-time budget may not
// have SCHED_FIFO threads, root or not. What counts is whether isolation fifo works.
func (d *doctor) rtGroups() finding {
	set, source := d.config("CONFIG_RT_GROUP_SCHED")
	switch {
	case source == "":
		return good("not known (no /proc/config.gz, no /boot/config-" + d.Release + ")")
	case !set:
		return good("no (" + source + ")")
	case snapshot.TryFIFO() == nil:
		return good("yes (" + source + "), and this control group has a real-time budget")
	}
	// Without CAP_SYS_NICE the refusal may have that cause.
	if have, err := limits.Capabilities(); err != nil || have&(1<<unix.CAP_SYS_NICE) == 0 {
		return good("yes (" + source + "); without CAP_SYS_NICE the control group's real-time budget cannot be tried")
	}
	return bad("yes ("+source+")", "this control group may have no real-time budget (cpu.rt_runtime_us)")
}

// config looks an option up in the kernel's configuration. source is "" where there is none
// to read.
func (d *doctor) config(name string) (set bool, source string) {
	if b, err := readHead(d.proc, "", "config.gz", maxConfig); err == nil {
		if text, err := gunzip(b); err == nil {
			return isSet(text, name), "/proc/config.gz"
		}
	}
	file := "config-" + d.Release
	if b, err := readHead(d.boot, "", file, maxConfig); err == nil {
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
	value, _ := lineOf(string(config), name+"=")
	return strings.HasPrefix(value, "y") || strings.HasPrefix(value, "m")
}
