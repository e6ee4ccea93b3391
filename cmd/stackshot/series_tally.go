package main

import (
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"time"

	"stackshot/internal/show"
	"stackshot/snapshot"
)

// tally counts what became of the captures. Its size does not grow with their number.
type tally struct {
	began      int // captures begun
	captures   int // that brought a snapshot
	failed     int // that brought none, after the first
	incomplete int // that lack tasks or CPUs
	written    int // files, wherever
	spared     int // of them, in the place of last resort
	unwritten  int // snapshots that are nowhere
	pauses     spread
	first      time.Time // start of the first
	last       time.Time // end of the last, its file written
}

func (t *tally) begin(at time.Time) {
	if t.began++; t.began == 1 {
		t.first = at
	}
}

func (t *tally) captured(r *snapshot.Result) {
	t.captures++
	t.pauses.add(r.Stopped)
}

func (t *tally) stored(where string, err error) {
	if where == "" {
		t.unwritten++
		return
	}
	t.written++
	if err != nil {
		t.spared++
	}
}

// line is the last line of a series.
func (t *tally) line(skipped int) string {
	share := 0.0
	if d := t.last.Sub(t.first); d > 0 {
		share = 100 * t.pauses.sum.Seconds() / d.Seconds()
	}
	return fmt.Sprintf("captures: %s; stopped p50 %s, max %s, %.2f %% of the time; skipped: %s, failed: %s",
		show.Thousands(uint64(t.captures)), milliseconds(t.pauses.median()), milliseconds(t.pauses.max), share,
		show.Thousands(uint64(skipped)), show.Thousands(uint64(t.failed+t.spared+t.unwritten)))
}

// lost says what is missing from the series; nil: nothing.
func (t *tally) lost() error {
	var errs []error
	for _, l := range []struct {
		n    int
		what string
	}{
		{t.failed, "captures failed"},
		{t.unwritten, "snapshots are lost"},
		{t.spared, "snapshots were saved somewhere else"},
		{t.incomplete, "captures are incomplete"},
	} {
		if l.n > 0 {
			errs = append(errs, fmt.Errorf("%d of %d %s", l.n, t.began, l.what))
		}
	}
	return errors.Join(errs...)
}

// spread is a distribution of durations. What it holds does not grow with their number:
// each counts as the next lower value of six significant bits.
type spread struct {
	counts   map[time.Duration]int
	n        int
	max, sum time.Duration
}

func (s *spread) add(d time.Duration) {
	if s.counts == nil {
		s.counts = map[time.Duration]int{}
	}
	s.counts[sixBits(d)]++
	s.n++
	s.max, s.sum = max(s.max, d), s.sum+d
}

// sixBits is d with its lower bits cut off.
func sixBits(d time.Duration) time.Duration {
	lower := max(bits.Len64(uint64(d))-6, 0)
	return d >> lower << lower
}

// median is within a 32nd below the true one; 0 where there is none.
func (s *spread) median() time.Duration {
	seen := 0
	for _, d := range slices.Sorted(maps.Keys(s.counts)) {
		if seen += s.counts[d]; seen > s.n/2 {
			return d
		}
	}
	return 0
}
