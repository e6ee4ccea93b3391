// Package timens tells how far this process's clocks are from the machine's. In
// a time namespace CLOCK_MONOTONIC and CLOCK_BOOTTIME carry offsets ("ns:
// Introduce Time Namespace", Linux 5.6; time_namespaces(7)). Go's clocks have
// them, and so have the start times that /proc shows us; what BPF programs read,
// and what the kernel notes of tasks, has not. Everything in a capture is in the
// machine's own clocks: these offsets are taken off where a clock is read.
package timens

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// Monotonic and Boottime are what a reading of that clock in this process has
// more than the machine's own clock, ns. They cannot change while the process
// runs: only a process of one thread may enter another time namespace. 0 where Err
// says that they are not known; who shares deadlines with the kernel has to hold
// one clock against the other.
var Monotonic, Boottime, Err = own("/proc/self")

// own reads the offsets below self. The file has those of the namespace that
// children will be in, which is this process's own unless it has left it and has
// not executed a program since.
func own(self string) (monotonic, boottime int64, err error) {
	ours, err := os.Readlink(self + "/ns/time")
	if errors.Is(err, fs.ErrNotExist) {
		if _, none := os.Stat(self); none == nil {
			return 0, 0, nil // before 5.6, or no CONFIG_TIME_NS
		}
	}
	if err != nil {
		return 0, 0, err
	}
	if childrens, err := os.Readlink(self + "/ns/time_for_children"); err != nil || childrens != ours {
		return 0, 0, fmt.Errorf("this process is in %s and its children will be in %s: %w", ours, childrens, errors.ErrUnsupported)
	}
	text, err := os.ReadFile(self + "/timens_offsets")
	if err != nil {
		return 0, 0, err
	}
	return parse(string(text))
}

// parse reads lines "clock seconds nanoseconds"; the nanoseconds are never
// negative.
func parse(text string) (monotonic, boottime int64, err error) {
	if strings.Count(text, "\n") < 2 {
		return 0, 0, fmt.Errorf("timens_offsets has %d lines, want one for each of two clocks", strings.Count(text, "\n"))
	}
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
