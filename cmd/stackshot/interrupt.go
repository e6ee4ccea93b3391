package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// interruptedError is the cause of a context that a signal ended.
type interruptedError struct{ signal os.Signal }

func (e *interruptedError) Error() string { return fmt.Sprintf("interrupted (%v)", e.signal) }

// untilInterrupted gives a context that ends with the first SIGINT, SIGTERM or
// SIGHUP. From then on they do what they do by default, so a second one kills.
func untilInterrupted(parent context.Context) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	ch := make(chan os.Signal, 1)
	signal.Notify(ch, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		select {
		case s := <-ch:
			signal.Stop(ch)
			cancel(&interruptedError{s})
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(ch)
		cancel(nil)
	}
}

// interruptGrace is how long a capture, or the writing of its file, may take to
// end after a signal. It may be waiting for somebody else's capture; leaving
// ends every stop.
const interruptGrace = time.Second

// errLeftBehind says that something is still under way: only the end of the
// process ends it.
var errLeftBehind = errors.New("no snapshot")

// graced runs f and, after a signal, leaves it behind when it does not end.
func graced[T any](ctx context.Context, f func() (T, error)) (T, error) {
	type outcome struct {
		v   T
		err error
	}
	done := make(chan outcome, 1)
	go func() {
		v, err := f()
		done <- outcome{v, err}
	}()
	select {
	case o := <-done:
		return o.v, o.err
	case <-ctx.Done():
	}
	select {
	case o := <-done:
		return o.v, o.err
	case <-time.After(interruptGrace):
		var none T
		return none, fmt.Errorf("%w: %w", context.Cause(ctx), errLeftBehind)
	}
}

// outlive gives a context that ends some time after ctx, for the same cause.
func outlive(ctx context.Context, by time.Duration) (context.Context, func()) {
	longer, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		time.AfterFunc(by, func() { cancel(context.Cause(ctx)) })
	})
	return longer, func() {
		stop()
		cancel(nil)
	}
}
