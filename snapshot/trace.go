package snapshot

import (
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
