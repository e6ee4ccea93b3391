package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"stackshot/internal/publish"
	"stackshot/kcdata"
	"stackshot/snapshot"
)

// shot is one capture, in memory.
type shot struct {
	out   *publish.Spool
	plain []byte // out, mapped
	res   *snapshot.Result
}

// shoot captures into memory, by capture. A whole snapshot is worth keeping even if
// closing the session failed. Errors: errLeftBehind, after which capture may still write;
// the context's cause.
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

// stdoutClosed tells whether we were started without a standard output. The Go runtime has
// opened /dev/null in its place, as nobody does who redirects there: to read as well.
func stdoutClosed() bool {
	var out, null unix.Stat_t
	if unix.Fstat(int(os.Stdout.Fd()), &out) != nil || unix.Stat(os.DevNull, &null) != nil {
		return true
	}
	flags, err := unix.FcntlInt(os.Stdout.Fd(), unix.F_GETFL, 0)
	return err != nil || out.Rdev == null.Rdev && out.Mode&unix.S_IFMT == unix.S_IFCHR && flags&unix.O_ACCMODE == unix.O_RDWR
}

// readerGone says that whoever read our output has seen enough.
func readerGone(err error) bool { return errors.Is(err, unix.EPIPE) }

// write compresses a snapshot and saves it, for which a signal leaves it some time. where
// is "" for nowhere; size is in bytes.
func (t *take) write(ctx context.Context, d *publish.Destination, e kcdata.Envelope, plain []byte, grace time.Duration) (where string, size int64, err error) {
	file, err := publish.Compress(plain, e)
	if err == nil {
		defer file.Close()
		ctx, done := outlive(ctx, grace)
		defer done()
		where, err = d.Save(ctx, file)
		size, _ = file.Size()
	}
	switch {
	case where == "":
		err = fmt.Errorf("%w\nthe snapshot is lost", err)
	case err != nil:
		err = fmt.Errorf("%w\nthe snapshot is in %s instead (%s)", err, where, humanBytes(size))
	}
	return where, size, err
}
