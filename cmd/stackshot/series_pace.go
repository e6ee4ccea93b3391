package main

import (
	"context"
	"time"
)

// Without --interval the machine runs between two captures for at least minRest, and for at
// least restShare times as long as it stood still: so it stands still for at most a twentieth
// of the time.
const (
	restShare = 19
	minRest   = 100 * time.Millisecond
)

// pace decides when the next capture of a series begins. Captures never
// overlap and never queue: one whose time has passed is skipped.
type pace struct {
	interval time.Duration // start to start; 0: by the last pause
	skipped  int           // starts of --interval that passed during a capture
	next     time.Time     // earliest start of the next, with an interval on its grid; zero: there was none yet
}

// due is the start of the next capture, as seen at the time now.
func (p *pace) due(now time.Time) time.Time {
	if p.next.IsZero() {
		p.next = now
	}
	if late := now.Sub(p.next); p.interval > 0 && late > 0 {
		missed := int((late + p.interval - 1) / p.interval)
		p.skipped += missed
		p.next = p.next.Add(time.Duration(missed) * p.interval)
	}
	return p.next
}

// captured notes that a capture has ended, and for how long it stopped the machine. Its file
// may be written after that.
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
