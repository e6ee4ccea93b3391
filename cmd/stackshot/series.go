package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/publish"
	"stackshot/internal/urgency"
	"stackshot/kcdata"
	"stackshot/snapshot"
)

// series is repeated captures by one open session. One goroutine runs it.
type series struct {
	*take
	envelope kcdata.Envelope
	session  *snapshot.Session
	files    *publish.Series
	pace     pace
	tally    tally
	told     map[string]bool // warnings that were shown, by code, and errors by text
	jsonErr  error           // of standard output; nothing is written to it any more
}

// errLastCapture ends a series whose further captures would fail alike.
var errLastCapture = errors.New("the series ends")

func (t *take) runSeries(ctx context.Context, e kcdata.Envelope) error {
	t.patience = forever
	s := &series{take: t, envelope: e, pace: pace{interval: t.interval}, told: map[string]bool{"starved": true}} // that is said at once
	s.files = fileWriter(t.timeout).NameSeries(ctx, t.output, e)
	if err := checkTarget(ctx, s.files.Destination(1, time.Now())); err != nil {
		return err
	}
	var err error
	if s.session, err = graced(ctx, s.open); err != nil {
		return err
	}
	urgency.End()
	err = s.loop(ctx)
	if !errors.Is(err, errLeftBehind) { // else Close would wait for it
		err = errors.Join(err, s.session.Close())
	}
	if !t.quiet && s.tally.captures > 0 {
		say(os.Stderr, "%s", s.tally.line(s.pace.skipped))
	}
	return s.verdict(ctx, err)
}

// open has everything ready before the first capture.
func (s *series) open() (*snapshot.Session, error) {
	session, err := snapshot.Open(s.options)
	if err != nil {
		return nil, err
	}
	if err := session.Prepare(snapshot.Request{Pids: s.pids}); err != nil {
		return nil, errors.Join(err, session.Close())
	}
	return session, nil
}

func (s *series) loop(ctx context.Context) error {
	for n := 1; s.count == 0 || n <= s.count; n++ {
		if err := s.pace.wait(ctx); err != nil {
			return err
		}
		if err := s.once(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

// once makes capture n. An error ends the series. A failure that the next capture may not
// have is counted and shown instead.
func (s *series) once(ctx context.Context, n int) error {
	if n > 1 {
		s.own.forget()
	}
	urgency.Begin() // where it was refused before, the file says so
	defer urgency.End()
	at := time.Now()
	s.tally.begin(at)
	shot, err := s.shoot(ctx, func(r snapshot.Request) (*snapshot.Result, error) { return s.session.Take(ctx, r) })
	if err != nil {
		s.pace.captured(time.Now(), 0)
		return s.missed(ctx, n, err)
	}
	defer shot.out.Close()
	s.pace.captured(time.Now(), shot.res.Stopped)
	s.tally.captured(shot.res)
	if n == 1 && shot.res.Stopped > 0 {
		s.stayInMemory()
	}
	err = s.deliver(ctx, n, at, shot)
	s.tally.last = time.Now()
	return err
}

// missed deals with a capture that gave no snapshot.
func (s *series) missed(ctx context.Context, n int, err error) error {
	if n == 1 || ctx.Err() != nil {
		return err
	}
	s.tally.failed++
	s.tally.last = time.Now()
	s.complain(n, err)
	if errors.Is(err, snapshot.ErrNoTask) {
		return fmt.Errorf("%w: its task is gone", errLastCapture)
	}
	return nil
}

// stayInMemory locks the pages that the first capture touched, code and stacks. If the kernel
// took them back between captures, the next capture would fault with the machine stopped.
// Only what is mapped now is locked, and each page only when it is used: to lock all that the
// Go heap will ever map would populate each new arena, and could make an allocation fail.
func (s *series) stayInMemory() {
	if err := unix.Mlockall(unix.MCL_CURRENT | unix.MCL_ONFAULT); err != nil && !s.quiet {
		say(os.Stderr, "between captures this process may be swapped out (mlockall: %v)", err)
	}
}

// verdict is the outcome of the whole series. The details have been shown.
func (s *series) verdict(ctx context.Context, err error) error {
	if s.tally.written == 0 {
		return errors.Join(err, s.jsonErr, s.tally.lost())
	}
	if s.count == 0 && context.Cause(ctx) != nil && errors.Is(err, context.Cause(ctx)) {
		err = nil // that is how such a series ends
	} else if err != nil {
		err = fmt.Errorf("%w; captures made: %d", err, s.tally.captures)
	}
	if all := errors.Join(err, s.jsonErr, s.tally.lost()); all != nil {
		return partial(all)
	}
	return nil
}

// complain shows what went wrong with capture n, even with --quiet.
func (s *series) complain(n int, err error) { say(os.Stderr, "%s: %v", s.title(n), err) }

func (s *series) title(n int) string {
	if s.count == 0 {
		return fmt.Sprintf("capture %d", n)
	}
	return fmt.Sprintf("capture %d of %d", n, s.count)
}
