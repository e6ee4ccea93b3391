package latency

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"

	"stackshot/kcdata"
)

// ErrNoTrace says that the file holds none of the snapshotter's own events.
var ErrNoTrace = errors.New("no trace in this file: take --trace")

// TraceText writes the snapshotter's own last events in the order of time, with
// the time since the first. Errors are ErrNoTrace and the writer's.
func TraceText(w io.Writer, s *kcdata.Snapshot, width int) error {
	if len(s.Trace) == 0 {
		return ErrNoTrace
	}
	events := slices.Clone(s.Trace)
	slices.SortStableFunc(events, func(a, b kcdata.LinuxTrace) int { return cmp.Compare(a.AtNs, b.AtNs) })
	p := newPage(w, width)
	first := events[0].AtNs
	p.line("%d events; us since %d ns of CLOCK_MONOTONIC", len(events), first)
	t := table{named: true}
	t.row("us", "CPU", "event")
	for _, e := range events {
		since := e.AtNs - first
		t.row(fmt.Sprintf("%d.%03d", since/1000, since%1000), fmt.Sprint(e.CPU), eventText(s.Engine, e))
	}
	t.write(p)
	return p.w.Flush()
}

// partStates are the ends of an item under engine trap, enum part_state there.
var partStates = [...]string{"taken", "whole", "vanished", "cut", "no room"}

func eventText(engine string, e kcdata.LinuxTrace) string {
	place, ok := kcdata.TracePlaceOf(e.Place)
	switch {
	case !ok:
		return fmt.Sprintf("place %d, datum %#x", e.Place, e.Datum)
	case e.Place == kcdata.TraceItemEnd && engine == "trap":
		return fmt.Sprintf("%-8s  number %d %s", place.Name, e.Datum>>32, partState(uint32(e.Datum)))
	case place.Datum == "":
		return place.Name
	case place.Hex:
		return fmt.Sprintf("%-8s  %s %#x", place.Name, place.Datum, e.Datum)
	}
	return fmt.Sprintf("%-8s  %s %d", place.Name, place.Datum, e.Datum)
}

func partState(n uint32) string {
	if uint64(n) < uint64(len(partStates)) {
		return partStates[n]
	}
	return fmt.Sprintf("state %d", n)
}
