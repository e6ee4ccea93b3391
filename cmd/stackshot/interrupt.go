package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"stackshot/internal/publish"
)

// interruptedError is the cause of a context that a signal ended.
type interruptedError struct{ signal os.Signal }

func (e *interruptedError) Error() string { return fmt.Sprintf("interrupted (%v)", e.signal) }

// untilInterrupted gives a context that ends with the first SIGINT, SIGTERM or
// SIGHUP. After that they have their default action, so a second one kills. SIGHUP stays ignored if
// it was so at the start (nohup).
func untilInterrupted(parent context.Context) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	ch := make(chan os.Signal, 1)
	signal.Notify(ch, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(ch, syscall.SIGHUP)
	}
	go func() {
		select {
		case s := <-ch:
			signal.Stop(ch)
			cancel(&interruptedError{s})
			time.AfterFunc(lastResort, leave)
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(ch)
		cancel(nil)
	}
}

// lastResort is how long the process may live after a signal. If it lives that long, a write
// to whoever should read our output hangs: a pager, a terminal after ^S, a log daemon on a
// dead disk.
const lastResort = 6 * time.Second

// leave ends the process, and tries to say so.
func leave() {
	go say(os.Stderr, "interrupted, and what is still written, or shown, does not come to an end")
	time.Sleep(50 * time.Millisecond)
	os.Exit(exitFailed)
}

// interruptGrace is how long a capture may take to end after a signal. It may be waiting for
// somebody else's then. The end of the process ends every stop.
const interruptGrace = time.Second

// errLeftBehind says that something is still under way: only the end of the
// process ends it.
var errLeftBehind = errors.New("no snapshot")

// graced runs f. After a signal it waits for interruptGrace, then it leaves f behind.
func graced[T any](ctx context.Context, f func() (T, error)) (T, error) {
	longer, stop := publish.Outlive(ctx, interruptGrace)
	defer stop()
	type result struct {
		v   T
		err error
	}
	done := make(chan result, 1)
	go func() {
		v, err := f()
		done <- result{v, err}
	}()
	select {
	case r := <-done:
		return r.v, r.err
	case <-longer.Done():
		var none T
		return none, fmt.Errorf("%w: %w", context.Cause(ctx), errLeftBehind)
	}
}
