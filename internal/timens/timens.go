// Package timens tells how far this process's clocks are from the machine's. In
// a time namespace CLOCK_MONOTONIC and CLOCK_BOOTTIME carry offsets ("ns:
// Introduce Time Namespace", Linux 5.6; time_namespaces(7)). Go's clocks have
// them, and so have the start times that /proc shows us; what BPF programs read,
// and what the kernel notes of tasks, has not. Everything in a capture is in the
// machine's own clocks: these offsets are taken off where a clock is read.
package timens

import (
	"fmt"
	"os"
	"strings"
)

// Monotonic and Boottime are what a reading of that clock in this process has
// more than the machine's own clock, ns. They cannot change while the process
// runs: only a process of one thread may enter another time namespace. 0: there
// is no time namespace, or the kernel does not say; who shares deadlines with the
// kernel has to hold one clock against the other.
var Monotonic, Boottime = own()

func own() (monotonic, boottime int64) {
	text, err := os.ReadFile("/proc/self/timens_offsets")
	if err != nil {
		return 0, 0 // before 5.6, no CONFIG_TIME_NS, or no /proc
	}
	monotonic, boottime, err = parse(string(text))
	if err != nil {
		return 0, 0
	}
	return monotonic, boottime
}

// parse reads lines "clock seconds nanoseconds"; the nanoseconds are never
// negative.
func parse(text string) (monotonic, boottime int64, err error) {
	for line := range strings.Lines(text) {
		var clock string
		var sec, nsec int64
		if _, err := fmt.Sscan(line, &clock, &sec, &nsec); err != nil {
			return 0, 0, fmt.Errorf("line %q of timens_offsets: %w", line, err)
		}
		switch clock {
		case "monotonic", "1":
			monotonic = sec*1e9 + nsec
		case "boottime", "7":
			boottime = sec*1e9 + nsec
		}
	}
	return monotonic, boottime, nil
}
