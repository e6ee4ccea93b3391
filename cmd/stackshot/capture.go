package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"stackshot/internal/limits"
	"stackshot/internal/publish"
	"stackshot/internal/urgency"
	"stackshot/kcdata"
	"stackshot/snapshot"
)

// capture takes the snapshot.
func (t *take) capture(ctx context.Context) (*shot, error) {
	defer progress(t.quiet, "taking the snapshot")()
	_, threads := limits.Machine{}.Threads()
	if hugeHeap(hugePerThread*threads) && os.Getenv("GOGC") == "" {
		debug.SetGCPercent(seldom)
	}
	shot, err := t.shoot(ctx, func(r snapshot.Request) (*snapshot.Result, error) { return snapshot.Take(ctx, t.options, r) })
	if err != nil && err == context.Cause(ctx) {
		err = fmt.Errorf("%w: no snapshot", err)
	}
	return shot, err
}

// hugePerThread is the heap, in bytes, that a capture and its first screen take for each thread.
const hugePerThread = 8 << 10

// maxStop is longer than any stop without --max-pause.
const maxStop = time.Second

// hurry makes this process urgent. If that is refused, a warning goes into the file, but only
// on a busy machine, where it makes a difference.
func (t *take) hurry() {
	t.watchUrgency()
	if err := urgency.Begin(); err != nil && busy() {
		t.own.all = append(t.own.all, kcdata.Warning{
			Code: "ordinary_priority",
			Text: fmt.Sprintf("more threads want to run than there are CPUs, and the capture had to wait for its turn among them: SCHED_RR %d: %v (needs CAP_SYS_NICE or an RLIMIT_RTPRIO of 2, and an RT budget under CONFIG_RT_GROUP_SCHED)", urgency.Priority, err),
		})
	}
}

// watchUrgency bounds what being urgent may cost, and tells what it could not do.
func (t *take) watchUrgency() {
	urgency.Limit(max(t.options.MaxPause, maxStop))
	t.own = &notes{}
	t.options.Warnings = t.own.take
	urgency.Starved = func(wasRaised bool) { t.own.starve(wasRaised, t.quiet) }
}

// busy reports whether more threads want to run than there are CPUs.
func busy() bool {
	running, _ := limits.Machine{}.Threads()
	return running > int64(runtime.NumCPU())
}

// shot is one capture, in memory.
type shot struct {
	out   *publish.Spool
	plain []byte // out, mapped
	res   *snapshot.Result
}

// shoot captures into memory by calling capture. If that gives a whole snapshot and an error,
// as of closing the session, the snapshot is kept and the error is shown. Errors:
// errLeftBehind, after which capture may still write to the memory; the context's cause.
func (t *take) shoot(ctx context.Context, capture func(snapshot.Request) (*snapshot.Result, error)) (*shot, error) {
	out, err := publish.NewSpool("snapshot")
	if err != nil {
		return nil, err
	}
	res, err := graced(ctx, func() (*snapshot.Result, error) {
		return capture(snapshot.Request{Pids: t.pids, Output: out, Trace: t.trace})
	})
	if errors.Is(err, errLeftBehind) {
		return nil, err
	}
	if err != nil && res != nil {
		say(os.Stderr, "%v", err)
		err = nil
	}
	var plain []byte
	if err == nil {
		plain, err = out.Bytes()
	}
	if err != nil {
		out.Close()
		if cause := context.Cause(ctx); cause != nil && errors.Is(err, ctx.Err()) {
			err = cause
		}
		return nil, err
	}
	return &shot{out, plain, res}, nil
}

// stdoutName is the file name that means standard output, or input.
const stdoutName = publish.Stdout

// checkTarget refuses a target that cannot be written, before anything is stopped.
func checkTarget(ctx context.Context, d *publish.Destination) error {
	switch {
	case d.Path == stdoutName && term.IsTerminal(int(os.Stdout.Fd())):
		return usage("-o -: standard output is a terminal, and a snapshot is not text")
	case d.Path == stdoutName && stdoutClosed():
		return usage("-o -: standard output is closed")
	}
	return d.Check(ctx)
}

// stdoutClosed tells whether we were started without a standard output. The Go runtime then
// opens /dev/null in its place, and opens it for reading too, which no redirection does.
func stdoutClosed() bool {
	var out, null unix.Stat_t
	if unix.Fstat(int(os.Stdout.Fd()), &out) != nil || unix.Stat(os.DevNull, &null) != nil {
		return true
	}
	flags, err := unix.FcntlInt(os.Stdout.Fd(), unix.F_GETFL, 0)
	return err != nil || out.Rdev == null.Rdev && out.Mode&unix.S_IFMT == unix.S_IFCHR && flags&unix.O_ACCMODE == unix.O_RDWR
}
