package snapshot

import (
	"cmp"
	"slices"

	"stackshot/internal/bpf"
	"stackshot/kcdata"
)

// traceRing holds a worker's last events. Its worker alone writes it, between
// wake and done; the coordinator reads it while the worker is parked. What the
// trap's program notes stands in a ring of its own (internal/bpf/trace.h).
type traceRing struct {
	noted  uint32
	events [bpf.TraceEvents]kcdata.LinuxTrace
}

func (r *traceRing) reset() { r.noted = 0 }

// note may be called in the window.
func (w *worker) note(place uint32, datum uint64) {
	r := &w.trace
	r.events[r.noted%bpf.TraceEvents] = kcdata.LinuxTrace{
		AtNs: uint64(nanotime()), Datum: datum, CPU: uint32(w.cpu), Place: place,
	}
	r.noted++
}

// inTime sorts events of several workers and programs.
func inTime(events []kcdata.LinuxTrace) {
	slices.SortStableFunc(events, func(a, b kcdata.LinuxTrace) int { return cmp.Compare(a.AtNs, b.AtNs) })
}

// traces adds what the programs noted. They end an item by its part's state,
// the file by why it is left out.
func (e *trap) traces(c *captured, t *trapTry) {
	for _, w := range t.here {
		if w.away {
			continue
		}
		r := &e.loaded.Traces[w.cpu]
		for _, x := range r.Events[:min(r.Next, bpf.TraceEvents)] {
			if x.Place == kcdata.TraceItemEnd {
				x.Datum = x.Datum>>32<<32 | uint64(leftOut(&bpf.TrapPart{Worker: x.CPU + 1, State: uint32(x.Datum)}))
			}
			c.trace = append(c.trace, kcdata.LinuxTrace{AtNs: x.At, Datum: x.Datum, CPU: x.CPU, Place: x.Place})
		}
	}
}
