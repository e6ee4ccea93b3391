package latency

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"

	"stackshot/kcdata"
)

// ErrNoTrace says that the file holds no events of the snapshotter.
var ErrNoTrace = errors.New("no trace in this file: take --trace")

// TraceText writes the snapshotter's own last events in the order of time, with
// the time since the first event, in us. Errors are ErrNoTrace and the writer's.
func TraceText(w io.Writer, s *kcdata.Snapshot, width int) error {
	if len(s.Trace) == 0 {
		return ErrNoTrace
	}
	events := slices.Clone(s.Trace)
	slices.SortStableFunc(events, func(a, b kcdata.LinuxTrace) int { return cmp.Compare(a.AtNs, b.AtNs) })
	p := newPage(w, width)
	first := events[0].AtNs
	p.Line("%d events; us since %d ns of CLOCK_MONOTONIC", len(events), first)
	p.table(true, rowsOf([]string{"us", "CPU", "event"}, events, func(e *kcdata.LinuxTrace) []string {
		since := e.AtNs - first
		return []string{fmt.Sprintf("%d.%03d", since/1000, since%1000), fmt.Sprint(e.CPU), eventText(*e)}
	}))
	return p.w.Flush()
}

// eventText is the place of an event and its datum.
func eventText(e kcdata.LinuxTrace) string {
	place, ok := kcdata.TracePlaceOf(e.Place)
	switch {
	case !ok:
		return fmt.Sprintf("place %d, datum %#x", e.Place, e.Datum)
	case e.Place == kcdata.TraceItemEnd:
		return fmt.Sprintf("%-8s  %s %d %s", place.Name, place.Datum, e.Datum>>32, itemEnd(uint32(e.Datum)))
	case place.Datum == "":
		return place.Name
	case place.Hex:
		return fmt.Sprintf("%-8s  %s %#x", place.Name, place.Datum, e.Datum)
	}
	return fmt.Sprintf("%-8s  %s %d", place.Name, place.Datum, e.Datum)
}

// itemEnd says why an item was left out. Reason 0: it was recorded.
func itemEnd(reason uint32) string {
	if reason == 0 {
		return "whole"
	}
	if word := kcdata.LeftOutReason(reason); word != "unknown" {
		return word
	}
	return fmt.Sprintf("reason %d", reason)
}
