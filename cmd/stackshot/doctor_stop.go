package main

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	"stackshot/snapshot"
)

func (d *doctor) clockSource() finding {
	source, _ := d.file(d.sys, "devices/system/clocksource/clocksource0", "current_clocksource")
	if err := snapshot.JiffiesClock(source); err != nil {
		return bad(source, "no engine trap: it stands still while all CPUs have their interrupts off")
	}
	return good(cmp.Or(source, "not known"))
}

// hardLockup: the kernel takes a CPU for dead that takes no timer interrupt for
// kernel.watchdog_thresh seconds. A stop with interrupts off is bound to half of that.
func (d *doctor) hardLockup() finding {
	thresh, known := d.setting("watchdog_thresh")
	bound := snapshot.IRQOffBound(strconv.Itoa(thresh))
	limit := time.Duration(thresh) * time.Second
	nmi, there := d.setting("nmi_watchdog")
	panics, _ := d.setting("hardlockup_panic")
	stop := fmt.Sprintf("a stop with interrupts off is at most %v", bound)
	switch {
	case !known || thresh == 0:
		return good("none (kernel.watchdog_thresh); " + stop)
	case bound < snapshot.IRQOffBound(""):
		return bad(fmt.Sprintf("after %v (kernel.watchdog_thresh)", limit), "--max-pause is cut to half of that, "+bound.String()+", with interrupts off")
	case !there || nmi == 0:
		return good("off (kernel.nmi_watchdog); " + stop)
	case panics != 0:
		return bad(fmt.Sprintf("after %v, and it panics (kernel.hardlockup_panic)", limit),
			stop+", but time that a host takes away from a CPU comes on top")
	}
	return good(fmt.Sprintf("after %v, it only warns; %s", limit, stop))
}

// softLockup: the kernel takes a CPU for stuck that switches to no other thread for twice
// kernel.watchdog_thresh. The detector's own thread goes before SCHED_FIFO ("watchdog/
// softlockup: Replace "watchdog/%u" threads with cpu_stop_work", Linux 4.19), so
// engine pull does not trip it; preemption off does, for as long as --max-pause may be.
func (d *doctor) softLockup() finding {
	thresh, known := d.setting("watchdog_thresh")
	panics, there := d.setting("softlockup_panic")
	value := fmt.Sprintf("after %v", 2*time.Duration(thresh)*time.Second)
	if panics != 0 {
		value += ", and it panics (kernel.softlockup_panic)"
	}
	switch {
	case !known || thresh == 0 || !there:
		return good("none")
	case d.Auto.Isolation == snapshot.IsolationPreemptOff && panics != 0:
		return bad(value, "a stop by --max-pause of that or more would panic the machine")
	}
	return good(fmt.Sprintf("%s; a stop of %v is over before", value, time.Duration(d.Auto.MaxPauseNs)))
}

// rcuStall: no grace period ends while CPUs are held. The kernel logs one that takes too
// long as a stall. rcu_exp_cpu_stall_timeout, ms, is for expedited ones (Linux 5.19; 0: as
// the other, which is in s).
func (d *doctor) rcuStall() finding {
	number := func(file string) (int, bool) { return d.number(d.sys, "module/rcupdate/parameters", file) }
	normal, ok := number("rcu_cpu_stall_timeout")
	if off, _ := number("rcu_cpu_stall_suppress"); !ok || off != 0 {
		return good("not known, or not looked for")
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
		return good(fmt.Sprintf("%s; a stop of %v is over before", value, pause))
	case panics != 0:
		return bad(value, fmt.Sprintf("a stop may take %v: choose a --max-pause below the limit", pause))
	}
	return bad(value, fmt.Sprintf("a stop may take %v, and be logged as a stall", pause))
}
