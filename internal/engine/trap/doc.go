// Package trap is the engine in which a BPF program on each CPU holds that, with
// interrupts off where the kernel lets it, and records. A worker does no more than enter
// it by one read(2). What the programs leave behind in their maps is made a capture here.
package trap
