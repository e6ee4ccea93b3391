package main

import (
	"errors"
	"fmt"
	"math/bits"
	"time"

	"stackshot/internal/show"
	"stackshot/snapshot"
)

// tally is what a series came to. Its size does not grow with the series.
type tally struct {
	began      int // captures begun
	captures   int // that brought a snapshot
	failed     int // that brought none, after the first
	incomplete int // that lack tasks or CPUs
	written    int // files, wherever
	spared     int // of them, not where asked for
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

func (t *tally) end(at time.Time) { t.last = at }

func (t *tally) captured(r *snapshot.Result) {
	t.captures++
	t.pauses.add(r.Stopped)
}

func (t *tally) stored(where string, err error) {
	switch {
	case where == "":
		t.unwritten++
	case err != nil:
		t.spared++
		t.written++
	default:
		t.written++
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

// lost says what is missing from the series as a whole.
func (t *tally) lost() error {
	var errs []error
	for _, l := range []struct {
		n    int
		what string
	}{
		{t.failed, "captures failed"},
		{t.unwritten, "snapshots are lost"},
		{t.spared, "snapshots are not where asked for"},
		{t.incomplete, "captures are incomplete"},
	} {
		if l.n > 0 {
			errs = append(errs, fmt.Errorf("%d of %d %s", l.n, t.began, l.what))
		}
	}
	return errors.Join(errs...)
}

// spread is a distribution of durations in a fixed place: buckets of a 32nd of
// their power of two.
type spread struct {
	buckets  [64 * spreadParts]uint32
	n        int
	max, sum time.Duration
}

const spreadParts = 32

func (s *spread) add(d time.Duration) {
	s.buckets[bucketOf(uint64(d))]++
	s.n++
	s.max, s.sum = max(s.max, d), s.sum+d
}

// bucketOf is the value below 32, then 32 buckets for each power of two.
func bucketOf(v uint64) int {
	shift := max(bits.Len64(v)-6, 0)
	return shift*spreadParts + int(v>>shift)
}

// floorOf is the least value of a bucket.
func floorOf(b int) uint64 {
	shift := max(b/spreadParts-1, 0)
	return uint64(b-shift*spreadParts) << shift
}

// median is the least value of the bucket that holds the median.
func (s *spread) median() time.Duration {
	seen := 0
	for b, n := range s.buckets {
		if seen += int(n); seen > s.n/2 {
			return time.Duration(floorOf(b))
		}
	}
	return 0
}
