package main

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"

	"stackshot/internal/procfs"
	"stackshot/internal/show"
	"stackshot/internal/topology"
)

// cpus lists the CPUs, those that a stop leaves running, and those that do not record.
func (d *doctor) cpus() {
	add := func(name string, f finding) { d.add("machine", name, f) }
	t, err := topology.Machine()
	if err != nil {
		add("CPUs", bad("not known", err.Error()))
		return
	}
	online := topology.FormatCPUList(t.Online())
	allowed, err := topology.Allowed()
	if err != nil {
		add("CPUs", bad(online, err.Error()))
		return
	}
	add("CPUs online", good(fmt.Sprintf("%s, clusters: %d", online, len(t.Clusters))))
	left := func(name, cost string, is func(c topology.CPU) bool) {
		var ids []int
		for _, c := range t.CPUs {
			if is(c) {
				ids = append(ids, c.ID)
			}
		}
		if ids == nil {
			add(name, good("none"))
		} else {
			add(name, bad(topology.FormatCPUList(ids), cost))
		}
	}
	const isolated = "left running unless --stop-isolated"
	left("isolated CPUs", isolated, func(c topology.CPU) bool { return c.Isolation&(topology.Isolated|topology.Partition) != 0 })
	left("nohz_full CPUs", isolated, func(c topology.CPU) bool { return c.Isolation&topology.NohzFull != 0 })
	left("CPUs not allowed to us", "left running: outside this process's cpuset",
		func(c topology.CPU) bool { return c.Online && !slices.Contains(allowed, c.ID) })
	for _, f := range throttled(t.Online()) {
		add("throttled CPUs", f)
	}
}

// throttled names the CPUs that stop and do not record because of heat, a finding for each
// reason.
func throttled(online []int) (found []finding) {
	const cost = "they stop but do not record, unless --cpus names them or all are throttled"
	r := topology.NewThrottleReader(topology.Throttles)
	defer r.Close()
	hot, err := r.Read(online)
	if err != nil {
		return []finding{bad("not known", err.Error())}
	}
	reasons := map[string][]int{}
	for _, cpu := range online {
		if why := hot[cpu]; why != "" {
			reasons[why] = append(reasons[why], cpu)
		}
	}
	if len(reasons) == 0 {
		return []finding{good("none")}
	}
	for _, why := range slices.Sorted(maps.Keys(reasons)) {
		found = append(found, bad(topology.FormatCPUList(reasons[why])+": "+why, cost))
	}
	return found
}

// monitors are programs that run KVM guests, by their names as /proc/PID/comm cuts them;
// so are all whose name begins with "qemu-".
var monitors = []string{"kvm", "firecracker", "cloud-hyperviso", "crosvm", "VBoxHeadless", "VirtualBoxVM", "lkvm"}

func isMonitor(comm string) bool {
	return strings.HasPrefix(comm, "qemu-") || slices.Contains(monitors, comm)
}

// guests counts the processes that run virtual machines here. The CPUs of those stand still
// too, and may miss deadlines of their own.
func (d *doctor) guests() finding {
	tgids, err := d.proc.Tasks()
	if err != nil {
		return unknown(err)
	}
	found := 0
	for _, tgid := range tgids {
		if st, err := d.proc.Stat(tgid); err == nil && isMonitor(st.Comm) && !d.isKernelThread(tgid) {
			found++
		}
	}
	if found == 0 {
		return good("none")
	}
	return bad(show.Count(found, "virtual machine"), "guests stand still while the machine is stopped")
}

const kthreadd = 2 // parent of every kernel thread

// isKernelThread: the module kvm has kernel threads with the names of monitors.
func (d *doctor) isKernelThread(tgid int) bool {
	st, err := d.proc.Status(tgid)
	return err == nil && (st.PPid == kthreadd || st.Present&procfs.StatusHasKthread != 0 && st.Kthread)
}

// virtual says whether this machine is a guest: the host may then take its CPUs away, so
// that they arrive late.
func (d *doctor) virtual() finding {
	yes := good("yes: a CPU may be late when the host takes it away")
	if runtime.GOARCH != "amd64" {
		if _, ok := d.file(d.proc, "device-tree/hypervisor", "compatible"); ok {
			return yes
		}
		return finding{}
	}
	b, _ := readHead(d.proc, "", "cpuinfo", maxConfig)
	switch flags, ok := lineOf(string(b), "flags"); {
	case !ok:
		return finding{}
	case slices.Contains(strings.Fields(flags), "hypervisor"):
		return yes
	}
	return good("no")
}
