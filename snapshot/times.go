package snapshot

import (
	"time"

	"stackshot/internal/bpf"
	"stackshot/kcdata"
)

// times derives the durations of the file from the workers' stamps.
func (t *try) times(c *captured) {
	var taken, arrivedFirst, arrivedLast, window, releasedFirst, releasedLast, back int64
	for _, w := range t.here {
		s := w.stamp
		if !w.away && s.arrived != 0 {
			c.capture.StopBroken += s.switches // also of one that was moved off its CPU
		}
		if w.away || !s.in {
			continue
		}
		from, to := w.heldCPU()
		taken, back = earlier(taken, from), max(back, to)
		arrivedFirst, arrivedLast = earlier(arrivedFirst, s.arrived), max(arrivedLast, s.arrived)
		window = max(window, s.window)
		releasedFirst, releasedLast = earlier(releasedFirst, s.released), max(releasedLast, s.released)
		if s.main {
			c.capture.CensusNs = uint64(s.census)
		}
	}
	c.capture.StopNs = uint64(taken)
	c.capture.StoppedNs = uint64(back - taken)
	c.capture.ArrivalNs = uint64(arrivedLast - arrivedFirst)
	c.capture.WindowNs = uint64(max(releasedFirst-window, 0))
	c.capture.ReleaseNs = uint64(releasedLast - releasedFirst)
}

// heldInVain is how long a stop that was given up took the CPUs that had come.
func (t *try) heldInVain() time.Duration {
	var taken, left int64
	for _, w := range t.here {
		if !w.away && w.stamp.arrived != 0 {
			taken, left = earlier(taken, w.stamp.taken), max(left, w.stamp.left)
		}
	}
	return time.Duration(left - taken)
}

func earlier(a, b int64) int64 {
	if a == 0 || b < a {
		return b
	}
	return a
}

// spanOfSecond is how long the second pass came after the first record, ns, and
// how long it took.
func (t *try) spanOfSecond() (span, verify int64) {
	var from, to int64
	for _, w := range t.here {
		if w.away || !w.stamp.in {
			continue
		}
		from, to = earlier(from, w.stamp.window), max(to, w.stamp.verified)
		verify = max(verify, w.stamp.verified-w.stamp.checked)
	}
	return to - from, verify
}

// phases is where a CPU's time went: each field is the distance of two stamps
// that follow each other.
func (w *worker) phases(queue uint64) kcdata.LinuxPhases {
	s := &w.stamp
	from, to := w.heldCPU()
	span := func(from, to int64) uint64 { return uint64(max(to-from, 0)) }
	p := kcdata.LinuxPhases{
		CPU: uint32(w.cpu), TotalNs: span(from, to), EnterNs: span(from, s.arrived),
		ArrivalNs: span(s.arrived, s.decided), HoldNs: span(s.decided, s.window), CensusNs: uint64(s.census),
		QueueNs: queue, DrainNs: span(s.drained, s.checked), VerifyNs: span(s.checked, s.verified),
		ReleaseNs: span(s.verified, s.released), ExitNs: span(s.released, to),
	}
	p.RecordNs = span(s.window, s.drained) - min(span(s.window, s.drained), p.CensusNs+p.QueueNs)
	return p
}

// latencies derives the records that need the workers' stamps.
func (t *try) latencies(c *captured, mem *memory) {
	for _, w := range t.here {
		if !w.away && w.stamp.in {
			p := w.phases(mem.queue.Waited(w.slot))
			if w.cost.has {
				p.Cycles, p.Instrs = w.cost.cycles, w.cost.instrs
				p.Present |= kcdata.PhasesHaveCycles
			}
			c.phases = append(c.phases, p)
		}
		c.latency.TaskIterationMt = max(c.latency.TaskIterationMt, uint64(max(w.stamp.drained-w.stamp.window, 0)))
	}
}

// traces adds what the workers noted.
func (t *try) traces(c *captured) {
	for _, w := range t.here {
		if !w.away {
			c.trace = append(c.trace, w.trace.events[:min(w.trace.noted, bpf.TraceEvents)]...)
		}
	}
}
