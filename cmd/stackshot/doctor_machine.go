package main

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/procfs"
	"stackshot/internal/show"
	"stackshot/internal/timens"
	"stackshot/internal/topology"
)

func cleanField(b []byte) string { return show.Clean(unix.ByteSliceToString(b)) }

// machine lists what the stop meets: CPUs, guests, namespaces, memory.
func (d *doctor) machine() {
	const section = "machine"
	d.cpus(section)
	d.guests(section)
	d.virtual(section)
	d.pidNamespace(section)
	d.timeNamespace(section, timens.Monotonic, timens.Boottime, timens.Err)
	d.memory(section)
	d.lock(section)
}

func (d *doctor) cpus(section string) {
	t, err := topology.Machine()
	if err != nil {
		d.bad(section, "CPUs", "not known", err.Error())
		return
	}
	allowed, err := topology.Allowed()
	if err != nil {
		d.bad(section, "CPUs", topology.FormatCPUList(t.Online()), err.Error())
		return
	}
	d.good(section, "CPUs online", fmt.Sprintf("%s, clusters: %d", topology.FormatCPUList(t.Online()), len(t.Clusters)))
	which := func(is func(c topology.CPU) bool) (ids []int) {
		for _, c := range t.CPUs {
			if is(c) {
				ids = append(ids, c.ID)
			}
		}
		return ids
	}
	isolated := which(func(c topology.CPU) bool { return c.Isolated || c.Partition })
	tickless := which(func(c topology.CPU) bool { return c.NohzFull })
	outside := which(func(c topology.CPU) bool { return c.Online && !slices.Contains(allowed, c.ID) })
	d.leftRunning(section, "isolated CPUs", isolated, "left running unless --stop-isolated")
	d.leftRunning(section, "nohz_full CPUs", tickless, "left running unless --stop-isolated")
	d.leftRunning(section, "CPUs not allowed to us", outside, "left running: outside this process's cpuset")
	d.throttled(section, t.Online())
}

// throttled names the CPUs that hold still and do not record, because of heat.
func (d *doctor) throttled(section string, online []int) {
	const name, cost = "throttled CPUs", "they hold still and do not record, unless --cpus names them or all are throttled"
	r := topology.NewThrottleReader(topology.Throttles)
	defer r.Close()
	hot, err := r.Read(online)
	if err != nil {
		d.bad(section, name, "not known", err.Error())
		return
	}
	reasons := map[string][]int{}
	for _, cpu := range online {
		if why := hot[cpu]; why != "" {
			reasons[why] = append(reasons[why], cpu)
		}
	}
	if len(reasons) == 0 {
		d.good(section, name, "none")
	}
	for _, why := range slices.Sorted(maps.Keys(reasons)) {
		d.bad(section, name, topology.FormatCPUList(reasons[why])+": "+why, cost)
	}
}

func (d *doctor) leftRunning(section, name string, cpus []int, cost string) {
	if len(cpus) == 0 {
		d.good(section, name, "none")
		return
	}
	d.bad(section, name, topology.FormatCPUList(cpus), cost)
}

// Names, as /proc/PID/comm cuts them, of programs that run KVM guests.
var monitors = []string{
	"qemu-", "kvm", "firecracker", "cloud-hyperviso", "crosvm", "VBoxHeadless", "VirtualBoxVM", "lkvm",
}

// guests counts the processes that run virtual machines here: their CPUs stand
// still too, and may miss deadlines of their own.
func (d *doctor) guests(section string) {
	tgids, err := d.proc.Tasks()
	if err != nil {
		d.good(section, "KVM guests", "not known: "+err.Error())
		return
	}
	found := 0
	for _, tgid := range tgids {
		st, err := d.proc.Stat(tgid)
		if err == nil && slices.ContainsFunc(monitors, func(m string) bool { return isMonitor(st.Comm, m) }) && !d.isKernelThread(tgid) {
			found++
		}
	}
	if found == 0 {
		d.good(section, "KVM guests", "none")
		return
	}
	d.bad(section, "KVM guests", show.Count(found, "virtual machine"), "guests stand still while the machine is stopped")
}

func isMonitor(comm, name string) bool {
	if strings.HasSuffix(name, "-") {
		return strings.HasPrefix(comm, name)
	}
	return comm == name
}

const kthreadd = 2 // parent of every kernel thread

// isKernelThread: the module kvm has kernel threads that begin like a monitor.
func (d *doctor) isKernelThread(tgid int) bool {
	st, err := d.proc.Status(tgid)
	return err == nil && (st.PPid == kthreadd || st.Present&procfs.StatusHasKthread != 0 && st.Kthread)
}

// virtual says whether this machine is a guest: its CPUs may then be taken away
// by the host, and arrive late.
func (d *doctor) virtual(section string) {
	const name, yes = "virtual machine", "yes: a CPU may be late when the host takes it away"
	if runtime.GOARCH != "amd64" {
		if _, ok := d.file(d.proc, "device-tree/hypervisor", "compatible"); ok {
			d.good(section, name, yes)
		}
		return
	}
	b, _ := readOne(d.proc, "", "cpuinfo", maxConfig)
	switch flags, ok := lineOf(string(b), "flags"); {
	case !ok:
	case slices.Contains(strings.Fields(flags), "hypervisor"):
		d.good(section, name, yes)
	default:
		d.good(section, name, "no")
	}
}

func (d *doctor) pidNamespace(section string) {
	inode, isFirst, err := d.proc.PidNamespace()
	switch {
	case err != nil:
		d.good(section, "pid namespace", "not known: "+err.Error())
	case isFirst:
		d.good(section, "pid namespace", "the first")
	default:
		d.bad(section, "pid namespace", fmt.Sprint(inode), "tasks of this namespace only, and no engine trap")
	}
}

// timeNamespace says how far this process's clocks are from the machine's, ns.
func (d *doctor) timeNamespace(section string, monotonic, boottime int64, err error) {
	const name = "time namespace"
	switch {
	case err != nil:
		d.bad(section, name, "not known: "+err.Error(), "times may be those of a time namespace")
	case monotonic == 0 && boottime == 0:
		d.good(section, name, "none, or one with the machine's clocks")
	default:
		d.good(section, name, fmt.Sprintf("CLOCK_MONOTONIC is %v off the machine's, CLOCK_BOOTTIME %v: taken off in what is recorded",
			time.Duration(monotonic), time.Duration(boottime)))
	}
}

func lineOf(text, prefix string) (string, bool) {
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, prefix); ok {
			return strings.TrimSpace(rest), true
		}
	}
	return "", false
}
