package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"stackshot/internal/show"
	"stackshot/snapshot"
)

// shot is one capture of a series, in memory.
type shot struct {
	out   *spool
	plain []byte // out, mapped
	res   *snapshot.Result
}

// shoot captures into memory.
func (s *series) shoot(ctx context.Context) (*shot, error) {
	out, err := newSpool("snapshot")
	if err != nil {
		return nil, err
	}
	res, err := graced(ctx, func() (*snapshot.Result, error) {
		return s.session.Take(ctx, snapshot.Request{Pids: s.pids, Output: out, Trace: s.trace})
	})
	if errors.Is(err, errLeftBehind) {
		return nil, err // out is still being written to
	}
	var plain []byte
	if err == nil {
		plain, err = out.bytes()
	}
	if err != nil {
		out.close()
		return nil, interruption(ctx, err)
	}
	return &shot{out, plain, res}, nil
}

// interruption is the cause of an error that is our own context's.
func interruption(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && errors.Is(err, ctx.Err()) {
		return cause
	}
	return err
}

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
	where, size, err := s.write(ctx, s.store(n, at), shot.plain)
	s.tally.stored(where, err)
	switch {
	case where == "":
		s.complain(n, fmt.Errorf("%w\nthe snapshot is lost", err))
	case err != nil:
		s.complain(n, fmt.Errorf("%w\nthe snapshot is in %s instead (%s)", err, where, humanBytes(size)))
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

func (s *series) write(ctx context.Context, st *store, plain []byte) (where string, size int64, err error) {
	file, err := compress(plain, s.envelope)
	if err != nil {
		return "", 0, err
	}
	defer file.close()
	if size, err = file.size(); err != nil {
		return "", 0, err
	}
	ctx, done := outlive(ctx, interruptGrace)
	defer done()
	where, err = st.save(ctx, file.file)
	return where, size, err
}

// maxSpared bounds the files of a series in the place of last resort, which is
// memory: a target that refuses every file must not fill it.
const maxSpared = 8

// store is where capture n goes.
func (s *series) store(n int, at time.Time) *store {
	path, spare := s.names.of(n, at)
	return &store{
		path: path, spare: spare, given: s.output != "", timeout: s.timeout,
		noSpare: s.tally.spared >= maxSpared,
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
