package limits

// Memory is how many bytes this process may still take before the kernel has to end a
// process or to slow this one down: what the control groups and the machine leave. The cache
// of files counts as free.
func (m Machine) Memory() Room {
	r := unbounded
	for _, g := range m.groups("memory") {
		current, total, bounds := "memory.usage_in_bytes", "total_", []string{"memory.limit_in_bytes"}
		if g.unified {
			current, total, bounds = "memory.current", "", []string{"memory.max", "memory.high"}
		}
		used, known := m.number(g.dir, current)
		cache := m.sum(g.dir, "memory.stat", total+"inactive_file", total+"active_file")
		for _, name := range bounds {
			if most, bounded := m.number(g.dir, name); known && bounded && most < pageCounterMax {
				r = r.within(most, used-cache, name+" of "+g.dir)
			}
		}
	}
	if free := m.sum("/proc", "meminfo", "MemAvailable:"); free > 0 {
		total := m.sum("/proc", "meminfo", "MemTotal:") << 10
		r = r.within(total, total-free<<10, "the machine's memory")
	}
	return r
}

// pageCounterMax is near what version 1 shows for "no limit": LONG_MAX rounded down
// to a page.
const pageCounterMax = 1<<63 - 1<<20
