package latency

import (
	"cmp"
	"slices"

	"stackshot/kcdata"
)

// Work is what one stopped CPU did: kcdata.LinuxCPU.
type Work struct {
	CPU        uint32  `json:"cpu"`
	AfterNs    *uint64 `json:"arrived_after_ns,omitempty"` // after the first CPU; nil: not in the file
	Tasks      uint32  `json:"tasks"`
	Threads    uint32  `json:"threads"`
	Bytes      uint64  `json:"bytes"`
	SpillBytes uint64  `json:"spill_bytes"` // of these, from other clusters' arenas
}

func worksOf(cpus []kcdata.LinuxCPU) []Work {
	first := uint64(0)
	for _, c := range cpus {
		if arrived(&c) && (first == 0 || c.ArriveNs < first) {
			first = c.ArriveNs
		}
	}
	out := []Work{}
	for _, c := range cpus {
		if c.Flags&kcdata.CPUStopped == 0 {
			continue
		}
		w := Work{CPU: c.CPU, Tasks: c.Tasks, Threads: c.Threads, Bytes: c.Bytes, SpillBytes: c.SpillBytes}
		if arrived(&c) {
			after := c.ArriveNs - first
			w.AfterNs = &after
		}
		out = append(out, w)
	}
	return out
}

func arrived(c *kcdata.LinuxCPU) bool { return c.Flags&kcdata.CPUStopped != 0 && c.ArriveNs != 0 }

// lastCPU is the CPU that the others waited for.
func lastCPU(cpus []kcdata.LinuxCPU) *uint32 {
	var held []kcdata.LinuxCPU
	for _, c := range cpus {
		if arrived(&c) {
			held = append(held, c)
		}
	}
	if len(held) < 2 {
		return nil
	}
	last := slices.MaxFunc(held, func(a, b kcdata.LinuxCPU) int { return cmp.Compare(a.ArriveNs, b.ArriveNs) })
	return &last.CPU
}
