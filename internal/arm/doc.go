// Package arm keeps a machine armed: BPF programs, attached to the kernel's SysRq and panic, that
// record all threads into a region of memory. A crash dump has the region; after a SysRq this
// process saves it.
//
//	Open     lock ─► machine described ─► programs loaded and attached ─► list of frames, head
//	Next     a SysRq came: the region is copied out and freed for the next one
//	         else, once a second: kernel.sysrq; every ten seconds: modules, online CPUs, threads
//	Close    programs detached, memory freed
//
// Who writes what: the head's copies of panicregion.Static, the list and the two rooms for the
// description are this process's; the records and the walk's own words the programs'. The state
// word goes from DONE to FREE by this process alone, by compare-and-swap (internal/bpf/panic.h).
//
// The kernel tells nobody when kernel.sysrq or the modules change: files of /proc have neither
// inotify nor, these two, poll. So they are read again, into buffers that stay: a second costs one
// read of 4 bytes. Only when the modules differ is the machine described anew, into the other
// room, so that at any time the head leads to a description that is whole.
package arm
