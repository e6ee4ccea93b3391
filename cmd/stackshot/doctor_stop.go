package main

import (
	"fmt"
	"strconv"
	"time"

	"stackshot/internal/procfs"
	"stackshot/snapshot"
)

// stop lists what a stop of the machine meets in the kernel's own clocks and
// watchdogs. It comes after engines, which finds out how long and how still a stop is.
func (d *doctor) stop() {
	const section = "machine"
	d.clockSource(section)
	d.hardLockup(section)
	d.softLockup(section)
	d.rcuStall(section)
}

func (d *doctor) clockSource(section string) {
	source, ok := d.file(d.sys, "devices/system/clocksource/clocksource0", "current_clocksource")
	if err := snapshot.JiffiesClock(source); err != nil {
		d.bad(section, "clock source", source, "no engine trap: it stands still while all CPUs have their interrupts off")
		return
	}
	if !ok {
		source = "not known"
	}
	d.good(section, "clock source", source)
}

// setting is a number among the kernel's settings.
func (d *doctor) setting(name string) (value int, ok bool) {
	return d.number(d.proc, "sys/kernel", name)
}

func (d *doctor) number(root procfs.FS, dir, name string) (value int, ok bool) {
	text, ok := d.file(root, dir, name)
	if !ok {
		return 0, false
	}
	value, err := strconv.Atoi(text)
	return value, err == nil
}

// hardLockup: a CPU that takes no timer interrupt for kernel.watchdog_thresh seconds
// is taken for dead. A stop with interrupts off is bound to half of that.
func (d *doctor) hardLockup(section string) {
	const name = "hard lockup detector"
	thresh, known := d.setting("watchdog_thresh")
	bound := snapshot.IRQOffBound(strconv.Itoa(thresh))
	limit := time.Duration(thresh) * time.Second
	nmi, there := d.setting("nmi_watchdog")
	panics, _ := d.setting("hardlockup_panic")
	stop := fmt.Sprintf("a stop with interrupts off is at most %v", bound)
	switch {
	case !known || thresh == 0:
		d.good(section, name, "none (kernel.watchdog_thresh); "+stop)
	case bound < snapshot.IRQOffBound(""):
		d.bad(section, name, fmt.Sprintf("after %v (kernel.watchdog_thresh)", limit), "--max-pause is cut to half of that, "+bound.String()+", with interrupts off")
	case !there || nmi == 0:
		d.good(section, name, "off (kernel.nmi_watchdog); "+stop)
	case panics != 0:
		d.bad(section, name, fmt.Sprintf("after %v, and it panics (kernel.hardlockup_panic)", limit),
			stop+", but time that a host takes away from a CPU comes on top")
	default:
		d.good(section, name, fmt.Sprintf("after %v, it only warns; %s", limit, stop))
	}
}

// softLockup: a CPU that switches to no other thread for twice kernel.watchdog_thresh
// is taken for stuck. The detector's own thread goes before SCHED_FIFO ("watchdog/
// softlockup: Replace "watchdog/%u" threads with cpu_stop_work", Linux 4.19), so
// engine pull does not trip it; preemption off does, for as long as --max-pause may be.
func (d *doctor) softLockup(section string) {
	const name = "soft lockup detector"
	thresh, known := d.setting("watchdog_thresh")
	limit := 2 * time.Duration(thresh) * time.Second
	panics, there := d.setting("softlockup_panic")
	value := fmt.Sprintf("after %v", limit)
	if panics != 0 {
		value += ", and it panics (kernel.softlockup_panic)"
	}
	switch {
	case !known || thresh == 0 || !there:
		d.good(section, name, "none")
	case d.Auto.Isolation == snapshot.IsolationPreemptOff && panics != 0:
		d.bad(section, name, value, "a stop by --max-pause of that or more would panic the machine")
	default:
		d.good(section, name, fmt.Sprintf("%s; a stop of %v is over before", value, time.Duration(d.Auto.MaxPauseNs)))
	}
}

// rcuStall: CPUs that are held let no grace period end. One that takes too long is
// logged as a stall. rcu_exp_cpu_stall_timeout, ms, is for expedited ones (Linux
// 5.19; 0: as the other, which is in s).
func (d *doctor) rcuStall(section string) {
	const name, dir = "RCU stall", "module/rcupdate/parameters"
	number := func(file string) (int, bool) { return d.number(d.sys, dir, file) }
	normal, ok := number("rcu_cpu_stall_timeout")
	if off, _ := number("rcu_cpu_stall_suppress"); !ok || off != 0 {
		d.good(section, name, "not known, or not looked for")
		return
	}
	limit, which := time.Duration(normal)*time.Second, "rcu_cpu_stall_timeout"
	if exp, ok := number("rcu_exp_cpu_stall_timeout"); ok && exp > 0 && time.Duration(exp)*time.Millisecond < limit {
		limit, which = time.Duration(exp)*time.Millisecond, "rcu_exp_cpu_stall_timeout"
	}
	value := fmt.Sprintf("logged after %v (%s)", limit, which)
	panics, _ := d.setting("panic_on_rcu_stall")
	if panics != 0 {
		value += ", and it panics (kernel.panic_on_rcu_stall)"
	}
	pause := time.Duration(d.Auto.MaxPauseNs)
	switch {
	case pause < limit:
		d.good(section, name, fmt.Sprintf("%s; a stop of %v is over before", value, pause))
	case panics != 0:
		d.bad(section, name, value, fmt.Sprintf("a stop may take %v: choose a --max-pause below the limit", pause))
	default:
		d.bad(section, name, value, fmt.Sprintf("a stop may take %v, and be logged as one", pause))
	}
}
