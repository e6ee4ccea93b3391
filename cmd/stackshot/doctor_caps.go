package main

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// capability is one that a capture uses, and what its absence costs.
type capability struct {
	bit  uint
	name string
	cost string
	// Another capability, or'ed, that the kernel takes in its place; 0: none.
	or uint
}

// The kernel's rules: bpf_capable and perfmon_capable (include/linux/
// capability.h) take CAP_SYS_ADMIN as well; /proc/PID/stack asks for
// CAP_SYS_ADMIN alone (proc_pid_stack, fs/proc/base.c).
var capabilities = []capability{
	{unix.CAP_BPF, "CAP_BPF", "no BPF programs, so no engine trap or pull: nothing can be stopped", unix.CAP_SYS_ADMIN},
	{unix.CAP_PERFMON, "CAP_PERFMON", "BPF may not read the kernel's memory, so no engine trap or pull", unix.CAP_SYS_ADMIN},
	{unix.CAP_SYS_ADMIN, "CAP_SYS_ADMIN", "no user stacks (addresses in /proc/iomem, frame numbers in /proc/self/pagemap); engine procfs sees no kernel stacks (/proc/PID/stack)", 0},
	{unix.CAP_SYS_NICE, "CAP_SYS_NICE", "no SCHED_FIFO: busy CPUs may come late to engine trap; with engine pull other tasks run during the capture", 0},
	{unix.CAP_SYSLOG, "CAP_SYSLOG", "/proc/kallsyms may hide addresses: frames stay numbers", 0},
	{unix.CAP_SYS_PTRACE, "CAP_SYS_PTRACE", "of other users' processes no exe path, namespaces, mappings, I/O and system call from /proc, so no build-ids and no unwind tables: callers may be missing in their user stacks", 0},
	{unix.CAP_DAC_READ_SEARCH, "CAP_DAC_READ_SEARCH", "files that only their owner may read stay unread, under /proc and of the kernel's configuration", unix.CAP_DAC_OVERRIDE},
	{unix.CAP_IPC_LOCK, "CAP_IPC_LOCK", "buffers beyond RLIMIT_MEMLOCK are not locked and may fault in the window", 0},
	{unix.CAP_SYS_RESOURCE, "CAP_SYS_RESOURCE", "resource limits (ulimit) stay as low as they are: where RLIMIT_FSIZE, AS, DATA or NOFILE is too low, there is no capture", 0},
}

func (d *doctor) capabilities() {
	const section = "capabilities"
	have, err := effective()
	if err != nil {
		d.bad(section, "capget", err.Error(), "not known what this process may do")
		return
	}
	for _, c := range capabilities {
		switch {
		case have&(1<<c.bit) != 0:
			d.good(section, c.name, "effective")
		case c.or != 0 && have&(1<<c.or) != 0:
			d.good(section, c.name, "not effective, another serves in its place")
		default:
			d.bad(section, c.name, "not effective", c.cost)
		}
	}
	d.userNamespace(section)
}

// effective gives this thread's effective capabilities, a bit each.
func effective() (uint64, error) {
	var data [2]unix.CapUserData
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	if err := unix.Capget(&hdr, &data[0]); err != nil {
		return 0, err
	}
	return uint64(data[1].Effective)<<32 | uint64(data[0].Effective), nil
}

// userNamespace tells whether capabilities count for the machine or only for a
// namespace: the first one maps every id to itself.
func (d *doctor) userNamespace(section string) {
	text, ok := d.file(d.proc, "self", "uid_map")
	if !ok {
		d.good(section, "user namespace", "not known")
		return
	}
	var inside, outside, count uint64
	if n, _ := fmt.Sscan(text, &inside, &outside, &count); n == 3 && inside == 0 && outside == 0 && count == 1<<32-1 {
		d.good(section, "user namespace", "the first")
		return
	}
	d.bad(section, "user namespace", "not the first", fmt.Sprintf("uid %d and its capabilities count inside it only", os.Geteuid()))
}
