package main

import (
	"context"
	"errors"
	"os"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"stackshot/internal/publish"
)

// stdoutName is the file name that means standard output, or input.
const stdoutName = publish.Stdout

// checkTarget refuses a target that cannot be written, before anything is stopped.
func checkTarget(ctx context.Context, d *publish.Destination) error {
	switch {
	case d.Path == stdoutName && term.IsTerminal(int(os.Stdout.Fd())):
		return &usageError{errors.New("-o -: standard output is a terminal, and a snapshot is not text")}
	case d.Path == stdoutName && stdoutClosed():
		return &usageError{errors.New("-o -: standard output is closed")}
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
