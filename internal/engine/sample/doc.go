// Package sample takes samples of CPUs that were not stopped, after the release. Each has a
// perf event whose BPF program writes down the thread that it interrupts.
package sample
