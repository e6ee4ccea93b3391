// Package engine has what the engines share: what they are asked to do (Job, Size), what
// they can do (Caps), how they are opened (Config), and the memory into which they
// record (Memory, Recording).
//
//	engine/trap    a BPF program holds each CPU and records
//	engine/pull    threads hold the CPUs and read BPF iterators
//	engine/proc    reads /proc, stops nothing
//	engine/stop    the workers and the stop, for trap and pull
//	engine/sample  samples CPUs that were not stopped
//
// An engine lends the bytes of what it captured until Release. It knows nothing of
// sessions, tries and files.
package engine
