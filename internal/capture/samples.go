package capture

import "stackshot/kcdata"

// AddSample adds a sample of a CPU. Its delay counts from windowEnd.
func (c *Raw) AddSample(s Sample, windowEnd uint64) {
	if s.At > windowEnd {
		s.Delay = s.At - windowEnd
	}
	s.Ran = c.noteRan(&s)
	c.Samples = append(c.Samples, s)
}

// Unstopped are the CPUs on which other tasks ran during the capture.
func (c *Raw) Unstopped() (out []int) {
	for i := range c.CPUs {
		if c.Isolation == None || c.CPUs[i].Flags&(kcdata.CPUMissed|kcdata.CPULeft) != 0 {
			out = append(out, int(c.CPUs[i].CPU))
		}
	}
	return out
}

// WindowEnd is when the first CPU was released; began if none was held.
func (c *Raw) WindowEnd(began uint64) uint64 {
	end := uint64(0)
	for i := range c.CPUs {
		if at := c.CPUs[i].ReleaseNs; at != 0 && (end == 0 || at < end) {
			end = at
		}
	}
	if end == 0 {
		return began
	}
	return end
}

// noteRan writes into the CPU's record what the CPU ran. The record of a CPU that was
// stopped has that already. It reports whether it wrote.
func (c *Raw) noteRan(s *Sample) bool {
	for i := range c.CPUs {
		r := &c.CPUs[i]
		if int(r.CPU) != s.CPU || r.Flags&(kcdata.CPUStopped|kcdata.CPURanKnown) != 0 || s.Tid == 0 && !s.Idle {
			continue
		}
		r.Flags |= kcdata.CPURanKnown
		r.RanTid, r.RanTgid = s.Tid, s.Tgid
		if s.Idle {
			r.Flags |= kcdata.CPUIdle
		}
		return true
	}
	return false
}
