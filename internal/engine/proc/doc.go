// Package proc is the engine procfs: it reads everything from /proc, one goroutine for
// each working CPU, and stops nothing. It is the oracle of the tests, the last resort
// where BPF or the rights are missing, and reads what the kernel hides from BPF.
package proc
