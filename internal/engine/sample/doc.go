// Package sample asks CPUs that were not stopped what they run, after the release: a perf
// event on each, whose BPF program writes down the thread that it interrupts.
package sample
