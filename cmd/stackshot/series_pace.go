package main

import (
	"context"
	"time"
)

// Without --interval the machine runs at least restShare times as long as it
// stood still, so that it stands for a twentieth of the time, and at least
// minRest.
const (
	restShare = 19
	minRest   = 100 * time.Millisecond
)

// pace decides when the next capture of a series begins. Captures never
// overlap and never queue: one whose time has passed is skipped.
type pace struct {
	interval time.Duration // start to start; 0: by the last pause
	skipped  int           // starts of --interval that passed during a capture

	first time.Time // start of the first; zero: none yet
	next  time.Time // earliest start of the next; with an interval, on its grid
}

// due is the start of the next capture, asked for at a time.
func (p *pace) due(now time.Time) time.Time {
	if p.first.IsZero() {
		p.first, p.next = now, now
		return now
	}
	if late := now.Sub(p.next); p.interval > 0 && late > 0 {
		missed := int((late + p.interval - 1) / p.interval)
		p.skipped += missed
		p.next = p.next.Add(time.Duration(missed) * p.interval)
	}
	return p.next
}

// captured notes that a capture which stopped the machine for so long has
// ended; writing its file may follow.
func (p *pace) captured(now time.Time, stopped time.Duration) {
	if p.interval > 0 {
		p.next = p.next.Add(p.interval)
		return
	}
	p.next = now.Add(max(minRest, restShare*stopped))
}

// wait waits for the start of the next capture. Errors: the context's cause.
func (p *pace) wait(ctx context.Context) error {
	if ctx.Err() == nil {
		timer := time.NewTimer(time.Until(p.due(time.Now())))
		defer timer.Stop()
		select {
		case <-timer.C:
			return nil
		case <-ctx.Done():
		}
	}
	return context.Cause(ctx)
}
