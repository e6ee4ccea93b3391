package stop

import (
	"os"
	"slices"
	"strings"

	"stackshot/internal/capture"
	"stackshot/internal/topology"
	"stackshot/kcdata"
)

const onlinePath = "/sys/devices/system/cpu/online"

// CpusOnline are those that the kernel runs tasks on now; nil: it does not say.
// The kernel answers this file itself: it waits for nobody.
func CpusOnline() []int {
	text, err := os.ReadFile(onlinePath)
	if err != nil {
		return nil
	}
	cpus, err := topology.ParseCPUList(strings.TrimSpace(string(text)))
	if err != nil {
		return nil
	}
	return cpus
}

// hotplug compares the plan, which was made in Open, with the CPUs online after the
// stop. A CPU that is gone gets no record, since nothing ran there. A CPU that is new
// ran on, and its record says so.
func hotplug(c *capture.Raw, plan *topology.Plan, online []int) {
	if online == nil {
		return
	}
	var gone, come []int
	for _, cpu := range plan.Topology.CPUs {
		now := slices.Contains(online, cpu.ID)
		switch {
		case cpu.Online && !now && !c.StoppedCPU(cpu.ID):
			gone = append(gone, cpu.ID)
		case !cpu.Online && now:
			come = append(come, cpu.ID)
		}
	}
	c.CPUs = slices.DeleteFunc(c.CPUs, func(r kcdata.LinuxCPU) bool { return slices.Contains(gone, int(r.CPU)) })
	if len(gone) > 0 {
		c.Warn("cpu_offline", "CPU "+topology.FormatCPUList(gone)+" went offline after the session was opened: nothing runs there")
	}
	if len(come) > 0 {
		c.Warn("cpu_online", "CPU "+topology.FormatCPUList(come)+" came online after the session was opened: it was not stopped")
	}
	for _, id := range come {
		c.CPUs = append(c.CPUs, kcdata.LinuxCPU{CPU: uint32(id), Flags: kcdata.CPULeft})
	}
}
