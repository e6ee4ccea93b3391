package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"stackshot/snapshot"
)

// capture takes the snapshot into memory.
func (t *take) capture(ctx context.Context) ([]byte, *snapshot.Result, error) {
	defer progress(t.quiet, "taking the snapshot")()
	out, err := newSpool("snapshot")
	if err != nil {
		return nil, nil, err
	}
	res, err := graced(ctx, func() (*snapshot.Result, error) {
		return snapshot.Take(ctx, t.options, snapshot.Request{Pids: t.pids, Output: out, Trace: t.trace})
	})
	if errors.Is(err, errLeftBehind) {
		return nil, nil, err
	}
	return t.captured(ctx, out, res, err)
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
