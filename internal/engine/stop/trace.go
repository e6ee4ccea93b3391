package stop

import (
	"stackshot/internal/bpf"
	"stackshot/internal/clock"
	"stackshot/kcdata"
)

// traceRing holds a worker's last events. Its worker alone writes it, between
// wake and done; the coordinator reads it while the worker is parked. The trap's
// program notes its events in a ring of its own (internal/bpf/trace.h).
type traceRing struct {
	noted  uint32
	events [bpf.TraceEvents]kcdata.LinuxTrace
}

func (r *traceRing) reset() { r.noted = 0 }

// Note may be called in the window.
func (w *Worker) Note(place uint32, datum uint64) {
	r := &w.trace
	r.events[r.noted%bpf.TraceEvents] = kcdata.LinuxTrace{
		AtNs: uint64(clock.Nanotime()), Datum: datum, CPU: uint32(w.CPU), Place: place,
	}
	r.noted++
}
