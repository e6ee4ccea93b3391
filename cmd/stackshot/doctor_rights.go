package main

import (
	"fmt"
	"os"
	"path"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/limits"
	"stackshot/internal/mounts"
	"stackshot/snapshot"
)

// capability is one that a capture uses.
type capability struct {
	bit  uint
	name string
	cost string // what a capture loses without it
	or   uint   // another capability that the kernel takes in its place; 0: none
}

// The kernel's rules: bpf_capable and perfmon_capable (include/linux/capability.h) take
// CAP_SYS_ADMIN as well; /proc/PID/stack asks for CAP_SYS_ADMIN alone (proc_pid_stack,
// fs/proc/base.c).
var capabilities = []capability{
	{unix.CAP_BPF, "CAP_BPF", "no BPF programs, so no engine trap or pull: nothing can be stopped", unix.CAP_SYS_ADMIN},
	{unix.CAP_PERFMON, "CAP_PERFMON", "BPF may not read the kernel's memory, so no engine trap or pull", unix.CAP_SYS_ADMIN},
	{unix.CAP_SYS_ADMIN, "CAP_SYS_ADMIN", "no user stacks (addresses in /proc/iomem, frame numbers in /proc/self/pagemap); engine procfs sees no kernel stacks (/proc/PID/stack)", 0},
	{unix.CAP_SYS_NICE, "CAP_SYS_NICE", "no SCHED_FIFO: busy CPUs may come late to engine trap; with engine pull other tasks run during the capture", 0},
	{unix.CAP_SYSLOG, "CAP_SYSLOG", "/proc/kallsyms may hide addresses: frames stay numbers", 0},
	{unix.CAP_SYS_PTRACE, "CAP_SYS_PTRACE", "no exe path, namespaces, mappings, I/O and system call of other users' processes, so no build-ids and no unwind tables: callers may be missing in their user stacks", 0},
	{unix.CAP_DAC_READ_SEARCH, "CAP_DAC_READ_SEARCH", "files that only their owner may read stay unread, in /proc and of the kernel's configuration", unix.CAP_DAC_OVERRIDE},
	{unix.CAP_IPC_LOCK, "CAP_IPC_LOCK", "buffers beyond RLIMIT_MEMLOCK are not locked and may fault in the window", 0},
}

func (d *doctor) capabilities() {
	have, err := limits.Capabilities()
	if err != nil {
		d.add("capabilities", "capget", bad(err.Error(), "not known what this process may do"))
		return
	}
	for _, c := range capabilities {
		f := bad("not effective", c.cost)
		switch {
		case have&(1<<c.bit) != 0:
			f = good("effective")
		case c.or != 0 && have&(1<<c.or) != 0:
			f = good("not effective, but another capability serves in its place")
		}
		d.add("capabilities", c.name, f)
	}
	d.add("capabilities", "user namespace", d.userNamespace())
}

// userNamespace tells whether capabilities count for the machine or only inside a
// namespace. The first namespace maps every id to itself.
func (d *doctor) userNamespace() finding {
	text, ok := d.file(d.proc, "self", "uid_map")
	var inside, outside, count uint64
	switch n, _ := fmt.Sscan(text, &inside, &outside, &count); {
	case !ok:
		return good("not known")
	case n == 3 && inside == 0 && outside == 0 && count == 1<<32-1:
		return good("the first")
	}
	return bad("not the first", fmt.Sprintf("uid %d and its capabilities count inside it only", os.Geteuid()))
}

func (d *doctor) pidNamespace() finding {
	inode, isFirst, err := d.proc.PidNamespace()
	switch {
	case err != nil:
		return unknown(err)
	case isFirst:
		return good("the first")
	}
	return bad(fmt.Sprint(inode), "tasks of this namespace only, and no engine trap")
}

// timeNamespace says how far this process's clocks are from the machine's, in ns.
func timeNamespace(monotonic, boottime int64, err error) finding {
	switch {
	case err != nil:
		return bad("not known: "+err.Error(), "times may be those of a time namespace")
	case monotonic == 0 && boottime == 0:
		return good("none, or one with the machine's clocks")
	}
	return good(fmt.Sprintf("CLOCK_MONOTONIC is %v off the machine's, CLOCK_BOOTTIME %v: taken off in what is recorded",
		time.Duration(monotonic), time.Duration(boottime)))
}

// lock says whether this process's captures take turns with everybody else's.
func (d *doctor) lock() finding {
	path, err := snapshot.TryLock()
	if err != nil {
		return bad("none", err.Error())
	}
	return good(path)
}

// runDir says whether /run, where captures meet, is the host's. It is, if process 1 of the
// first pid namespace has the same directory there.
func (d *doctor) runDir() finding {
	const cost = "captures outside are not kept apart from those here"
	if _, isFirst, err := d.proc.PidNamespace(); err == nil && !isFirst {
		return bad("of a container (pid namespace), maybe not the host's", cost)
	}
	ours, err := d.mountOf("self", "/run")
	if err != nil {
		return bad("not known: "+err.Error(), cost)
	}
	theirs, err := d.mountOf("1", "/run")
	switch {
	case err != nil:
		return bad("not known: process 1: "+err.Error(), cost)
	case ours != theirs:
		return bad("not the host's: "+ours+", process 1 has "+theirs, cost)
	}
	return good("the host's")
}

// mountOf says which directory of which file system a process sees at dir: device
// and path in it. It touches nothing of the file system.
func (d *doctor) mountOf(pid, dir string) (string, error) {
	b, err := readHead(d.proc, pid, "mountinfo", maxConfig)
	if err != nil {
		return "", err
	}
	way := mounts.Parse(b).Way(dir)
	if len(way) == 0 {
		return "", fmt.Errorf("no file system that this root sees holds %s", dir)
	}
	at := way[len(way)-1]
	return at.Dev.String() + " " + path.Join(at.Root, strings.TrimPrefix(dir, at.Point)), nil
}
