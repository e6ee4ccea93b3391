package snapshot

import "stackshot/kcdata"

// addSample adds a sample of a CPU; windowEnd is what its delay counts from.
func (c *captured) addSample(s sampled, windowEnd uint64) {
	if s.at > windowEnd {
		s.delay = s.at - windowEnd
	}
	s.ran = c.noteRan(&s)
	c.samples = append(c.samples, s)
}

// unstopped are the CPUs on which others ran meanwhile.
func (c *captured) unstopped() (out []int) {
	for i := range c.cpus {
		if c.isolation == isolationNone || c.cpus[i].Flags&(kcdata.CPUMissed|kcdata.CPULeft) != 0 {
			out = append(out, int(c.cpus[i].CPU))
		}
	}
	return out
}

// windowEnd is when the first CPU was released; began if none was held.
func (c *captured) windowEnd(began uint64) uint64 {
	end := uint64(0)
	for i := range c.cpus {
		if at := c.cpus[i].ReleaseNs; at != 0 && (end == 0 || at < end) {
			end = at
		}
	}
	if end == 0 {
		return began
	}
	return end
}

// noteRan says in the CPU's record what it ran, unless the stop took it and
// knows better.
func (c *captured) noteRan(s *sampled) bool {
	for i := range c.cpus {
		r := &c.cpus[i]
		if int(r.CPU) != s.cpu || r.Flags&(kcdata.CPUStopped|kcdata.CPURanKnown) != 0 || s.tid == 0 && !s.idle {
			continue
		}
		r.Flags |= kcdata.CPURanKnown
		r.RanTid, r.RanTgid = s.tid, s.tgid
		if s.idle {
			r.Flags |= kcdata.CPUIdle
		}
		return true
	}
	return false
}
