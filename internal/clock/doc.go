// Package clock reads the machine's clocks: those that BPF programs read and in which
// the kernel notes times. In a time namespace this process's own clocks differ from
// them. Every time in a capture is of the machine's clocks.
package clock
