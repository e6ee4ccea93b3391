package main

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// However long captures take: with an interval all starts are on its grid, none
// overlaps, and every start of the grid was used or counted as skipped.
func TestPaceInterval(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		p := pace{interval: time.Duration(1 + rng.IntN(1000))}
		first := time.Unix(1000, 0)
		now, starts := first, 0
		for range 50 {
			at := p.due(now)
			if at.Before(now) || at.Sub(first)%p.interval != 0 {
				t.Fatalf("start at %v, asked at %v, interval %v", at.Sub(first), now.Sub(first), p.interval)
			}
			if at.Sub(now) > p.interval {
				t.Fatalf("waits %v of an interval of %v", at.Sub(now), p.interval)
			}
			starts++
			if on := int(at.Sub(first)/p.interval) + 1; starts+p.skipped != on {
				t.Fatalf("%d starts, %d skipped, at the %d. of the grid", starts, p.skipped, on)
			}
			p.captured(at.Add(1), 1)
			now = at.Add(time.Duration(rng.IntN(3000)))
		}
	}
}

// Without one: the next stop begins 19 pauses after the last, 100 ms at least.
func TestPaceByPause(t *testing.T) {
	t.Parallel()
	for stopped, want := range map[time.Duration]time.Duration{
		0: minRest, time.Millisecond: minRest, 10 * time.Millisecond: 190 * time.Millisecond, time.Second: 19 * time.Second,
	} {
		var p pace
		now := time.Unix(1000, 0)
		p.due(now)
		now = now.Add(time.Minute)
		p.captured(now, stopped)
		for _, asked := range []time.Duration{0, time.Hour} { // a slow disk in between
			if got := p.due(now.Add(asked)).Sub(now); got != want || p.skipped != 0 {
				t.Errorf("after %v: %v, %d skipped, want %v", stopped, got, p.skipped, want)
			}
		}
	}
}

// The median of a spread is within a 32nd of the true one, maximum and sum are
// exact.
func TestSpread(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		var s spread
		var all []time.Duration
		var sum time.Duration
		for range 1 + rng.IntN(200) {
			d := time.Duration(rng.Int64N(1 << rng.IntN(56)))
			s.add(d)
			all, sum = append(all, d), sum+d
		}
		slices.Sort(all)
		median, got := all[len(all)/2], s.median()
		if got > median || median-got > median/32 || s.max != all[len(all)-1] || s.sum != sum {
			t.Fatalf("median %v of %v, max %v of %v, sum %v of %v", got, median, s.max, all[len(all)-1], s.sum, sum)
		}
	}
	var none spread
	none.add(1<<63 - 1) // the longest there is has a bucket
	if none.median() <= 0 {
		t.Error("no bucket for the longest duration")
	}
}
