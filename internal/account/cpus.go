package account

import (
	"cmp"
	"slices"
	"strings"

	"stackshot/internal/show"
	"stackshot/kcdata"
)

// CPUsWith returns the numbers of the CPUs that have at least one of the flags (kcdata.CPU*).
func CPUsWith(s *kcdata.Snapshot, flags uint32) []uint64 {
	var out []uint64
	for i := range s.CPUs {
		if s.CPUs[i].Flags&flags != 0 {
			out = append(out, uint64(s.CPUs[i].CPU))
		}
	}
	return out
}

// CPUList writes "CPU 3" or "CPUs 1-3,7".
func CPUList(cpus []uint64) string {
	s := show.Ranges(cpus, 8)
	if strings.ContainsAny(s, ",-") {
		return "CPUs " + s
	}
	return "CPU " + s
}

// cpuKinds are the stable names of kcdata.CPUKind*.
var cpuKinds = map[uint32]string{kcdata.CPUKindE: "e", kcdata.CPUKindP: "p"}

// CPUJSON is the object of the report.
func CPUJSON(c *kcdata.LinuxCPU) show.Object {
	has := func(flag uint32) bool { return c.Flags&flag != 0 }
	known := uint64(c.Flags)
	return show.Object{
		{"cpu", c.CPU}, {"kind", cmp.Or(cpuKinds[c.Kind], "smp")}, {"cluster", c.Cluster},
		{"stopped", has(kcdata.CPUStopped)}, {"worked", has(kcdata.CPUWorked)}, {"missed", has(kcdata.CPUMissed)},
		{"left_running", has(kcdata.CPULeft)}, {"throttled", has(kcdata.CPUThrottled)}, {"idle", has(kcdata.CPUIdle)},
		{"ran_tid", show.Present(known, kcdata.CPURanKnown, c.RanTid)}, {"ran_tgid", show.Present(known, kcdata.CPURanKnown, c.RanTgid)},
		{"nr_running", c.NrRunning}, {"tasks", c.Tasks}, {"threads", c.Threads},
	}
}

// Work is what one stopped CPU did: kcdata.LinuxCPU.
type Work struct {
	CPU        uint32  `json:"cpu"`
	AfterNs    *uint64 `json:"arrived_after_ns,omitempty"` // after the first CPU; nil: not in the file
	Tasks      uint32  `json:"tasks"`
	Threads    uint32  `json:"threads"`
	Bytes      uint64  `json:"bytes"`
	SpillBytes uint64  `json:"spill_bytes"` // of these, from other clusters' arenas
}

// worksOf returns what each stopped CPU did, and the CPU that the others waited for; nil
// if fewer than two have a time of arrival. The results keep nothing of cpus.
func worksOf(cpus []kcdata.LinuxCPU) (works []Work, last *uint32) {
	stopped := slices.DeleteFunc(slices.Clone(cpus), func(c kcdata.LinuxCPU) bool { return c.Flags&kcdata.CPUStopped == 0 })
	timed := slices.DeleteFunc(slices.Clone(stopped), func(c kcdata.LinuxCPU) bool { return c.ArriveNs == 0 })
	arrival := func(a, b kcdata.LinuxCPU) int { return cmp.Compare(a.ArriveNs, b.ArriveNs) }
	first := uint64(0)
	if len(timed) > 0 {
		first = slices.MinFunc(timed, arrival).ArriveNs
	}
	if len(timed) > 1 {
		last = new(slices.MaxFunc(timed, arrival).CPU)
	}
	works = []Work{}
	for _, c := range stopped {
		w := Work{CPU: c.CPU, Tasks: c.Tasks, Threads: c.Threads, Bytes: c.Bytes, SpillBytes: c.SpillBytes}
		if c.ArriveNs != 0 {
			w.AfterNs = new(c.ArriveNs - first)
		}
		works = append(works, w)
	}
	return works, last
}
