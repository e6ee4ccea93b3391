package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"stackshot/internal/show"
	"stackshot/snapshot"
)

// deliver writes the file of a capture and says so. A failure is counted and
// said: the next capture may find room.
func (s *series) deliver(ctx context.Context, n int, at time.Time, shot *shot) {
	s.warn(n, shot.res)
	if err := s.incomplete(shot.res); err != nil {
		s.tally.incomplete++
		if key := err.Error(); !s.told[key] { // the same for each capture of a machine: once
			s.told[key] = true
			s.complain(n, err)
		}
	}
	where, size, err := s.write(ctx, s.files.Destination(n, at), s.envelope, shot.plain, interruptGrace)
	if s.tally.stored(where, err); err != nil {
		s.complain(n, err)
	}
	if s.json {
		s.object(n, where, shot.res)
	} else if !s.quiet && err == nil {
		say(os.Stderr, "%s: %s, wrote %s, %s", s.title(n), brief(shot.res), where, humanBytes(size))
	}
}

// object writes the capture's JSON, until nobody reads it any more.
func (s *series) object(n int, where string, res *snapshot.Result) {
	if s.jsonErr == nil {
		s.jsonErr = writeTakeJSON(os.Stdout, where, n, res)
	}
}

// warn shows each kind of warning once: a series would repeat it without end.
func (s *series) warn(n int, res *snapshot.Result) {
	for _, w := range res.Warnings {
		if !s.told[w.Code] && !s.quiet && !s.json {
			s.told[w.Code] = true
			say(os.Stderr, "%s: %s", s.title(n), w.Text)
		}
	}
}

// brief is a capture in a few words.
func brief(r *snapshot.Result) string {
	stopped := "nothing stopped"
	if r.Stopped > 0 {
		stopped = "stopped " + milliseconds(r.Stopped)
	}
	return fmt.Sprintf("%s, %s threads", stopped, show.Thousands(uint64(r.Threads)))
}

func milliseconds(d time.Duration) string { return fmt.Sprintf("%.1f ms", d.Seconds()*1e3) }
