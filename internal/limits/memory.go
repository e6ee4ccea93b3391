package limits

// Memory is how many bytes this process may still take before the kernel has to
// end a process, or to hold this one up: what control groups and machine leave,
// the cache of files counted as free.
func (m Machine) Memory() Room {
	r := unbounded
	for _, g := range m.groups("memory") {
		if g.unified {
			cache := m.sum(g.dir, "memory.stat", "inactive_file", "active_file")
			used, ok := m.number(g.dir, "memory.current")
			for _, name := range []string{"memory.max", "memory.high"} {
				if most, bounded := m.number(g.dir, name); ok && bounded {
					r = r.within(most, used-cache, name+" of "+g.dir)
				}
			}
			continue
		}
		most, bounded := m.number(g.dir, "memory.limit_in_bytes")
		used, ok := m.number(g.dir, "memory.usage_in_bytes")
		if bounded && ok && most < pageCounterMax {
			r = r.within(most, used-m.sum(g.dir, "memory.stat", "total_inactive_file", "total_active_file"), "memory.limit_in_bytes of "+g.dir)
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
