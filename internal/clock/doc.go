// Package clock reads the machine's clocks: those that BPF programs read and that the
// kernel notes times in, also from within a time namespace, where this process's own
// differ. Every time in a capture is of them.
package clock
