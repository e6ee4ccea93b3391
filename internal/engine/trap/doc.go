// Package trap is the engine in which a BPF program on each CPU holds that CPU, with
// interrupts off where the kernel allows it, and records. A worker only enters the
// program, by one read(2). After the stop this package makes a raw capture of what the
// programs left in their maps.
package trap
