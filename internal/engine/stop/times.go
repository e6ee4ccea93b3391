package stop

import (
	"time"

	"stackshot/internal/bpf"
	"stackshot/internal/capture"
	"stackshot/internal/engine"
	"stackshot/kcdata"
)

// times derives the durations of the file from the workers' stamps.
func (t *Try) times(c *capture.Raw) {
	var taken, arrivedFirst, arrivedLast, window, releasedFirst, releasedLast, back int64
	for _, w := range t.Here {
		s := w.Stamp
		if !w.Away && s.Arrived != 0 {
			c.Capture.StopBroken += s.Switches // also of one that was moved off its CPU
		}
		if w.Away || !s.In {
			continue
		}
		from, to := w.heldCPU()
		taken, back = Earlier(taken, from), max(back, to)
		arrivedFirst, arrivedLast = Earlier(arrivedFirst, s.Arrived), max(arrivedLast, s.Arrived)
		window = max(window, s.Window)
		releasedFirst, releasedLast = Earlier(releasedFirst, s.Released), max(releasedLast, s.Released)
		if s.Main {
			c.Capture.CensusNs = uint64(s.Census)
		}
	}
	c.Capture.StopNs = uint64(taken)
	c.Capture.StoppedNs = uint64(back - taken)
	c.Capture.ArrivalNs = uint64(arrivedLast - arrivedFirst)
	c.Capture.WindowNs = uint64(max(releasedFirst-window, 0))
	c.Capture.ReleaseNs = uint64(releasedLast - releasedFirst)
}

// heldInVain is how long a stop that was given up took the CPUs that had come.
func (t *Try) heldInVain() time.Duration {
	var taken, left int64
	for _, w := range t.Here {
		if !w.Away && w.Stamp.Arrived != 0 {
			taken, left = Earlier(taken, w.Stamp.Taken), max(left, w.Stamp.Left)
		}
	}
	return time.Duration(left - taken)
}

func Earlier(a, b int64) int64 {
	if a == 0 || b < a {
		return b
	}
	return a
}

// SpanOfSecond is how long the second pass came after the first record, ns, and
// how long it took.
func (t *Try) SpanOfSecond() (span, verify int64) {
	var from, to int64
	for _, w := range t.Here {
		if w.Away || !w.Stamp.In {
			continue
		}
		from, to = Earlier(from, w.Stamp.Window), max(to, w.Stamp.Verified)
		verify = max(verify, w.Stamp.Verified-w.Stamp.Checked)
	}
	return to - from, verify
}

// phases says where a CPU's time went: each field is the time between two successive
// stamps.
func (w *Worker) phases(queue uint64) kcdata.LinuxPhases {
	s := &w.Stamp
	from, to := w.heldCPU()
	span := func(from, to int64) uint64 { return uint64(max(to-from, 0)) }
	p := kcdata.LinuxPhases{
		CPU: uint32(w.CPU), TotalNs: span(from, to), EnterNs: span(from, s.Arrived),
		ArrivalNs: span(s.Arrived, s.Decided), HoldNs: span(s.Decided, s.Window), CensusNs: uint64(s.Census),
		QueueNs: queue, DrainNs: span(s.Drained, s.Checked), VerifyNs: span(s.Checked, s.Verified),
		ReleaseNs: span(s.Verified, s.Released), ExitNs: span(s.Released, to),
	}
	p.RecordNs = span(s.Window, s.Drained) - min(span(s.Window, s.Drained), p.CensusNs+p.QueueNs)
	if w.cost.has {
		p.Cycles, p.Instrs, p.Present = w.cost.cycles, w.cost.instrs, kcdata.PhasesHaveCycles
	}
	return p
}

// recorded adds what the workers noted, and where their time went.
func (t *Try) recorded(c *capture.Raw, mem *engine.Memory) {
	for _, w := range t.Here {
		if w.Away {
			continue
		}
		c.Trace = append(c.Trace, w.trace.events[:min(w.trace.noted, bpf.TraceEvents)]...)
		c.Latency.TaskIterationMt = max(c.Latency.TaskIterationMt, uint64(max(w.Stamp.Drained-w.Stamp.Window, 0)))
		if w.Stamp.In {
			c.Phases = append(c.Phases, w.phases(mem.Queue.Waited(w.Slot)))
		}
	}
}
