package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"stackshot/snapshot"
)

// interruptGrace is how long a capture may take to end after a signal. It may
// be waiting for somebody else's capture; leaving ends every stop.
const interruptGrace = time.Second

// capture takes the snapshot into memory.
func (t *take) capture(ctx context.Context) ([]byte, *snapshot.Result, error) {
	defer progress(t.quiet, "taking the snapshot")()
	out, err := newSpool("snapshot")
	if err != nil {
		return nil, nil, err
	}
	type outcome struct {
		res *snapshot.Result
		err error
	}
	done := make(chan outcome, 1)
	go func() {
		res, err := snapshot.Take(ctx, t.options, snapshot.Request{Pids: t.pids, Output: out, Trace: t.trace})
		done <- outcome{res, err}
	}()
	select {
	case o := <-done:
		return t.captured(ctx, out, o.res, o.err)
	case <-ctx.Done():
	}
	select {
	case o := <-done:
		return t.captured(ctx, out, o.res, o.err)
	case <-time.After(interruptGrace):
		return nil, nil, fmt.Errorf("%w: no snapshot", context.Cause(ctx))
	}
}

// captured maps the snapshot. A whole one is worth keeping even if closing the
// session failed.
func (t *take) captured(ctx context.Context, out *spool, res *snapshot.Result, err error) ([]byte, *snapshot.Result, error) {
	if cause := context.Cause(ctx); cause != nil && errors.Is(err, ctx.Err()) {
		err = fmt.Errorf("%w: no snapshot", cause)
	}
	if err != nil && res == nil {
		out.close()
		return nil, nil, err
	}
	if err != nil {
		say(os.Stderr, "%v", err)
	}
	plain, err := out.bytes()
	return plain, res, err
}
