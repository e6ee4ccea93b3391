package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"stackshot/internal/show"
)

// stdoutName is the target that means standard output.
const stdoutName = "-"

// lookLimit is how long a target may take to say that it is a bad one before
// anything is stopped. A target that does not answer may do so later.
const lookLimit = time.Second

// store is where a snapshot goes.
type store struct {
	path    string        // as the user gave it; stdoutName: standard output
	spare   string        // file name for the way out
	given   bool          // by the user, by name
	timeout time.Duration // --write-timeout
	noSpare bool          // the place of last resort has had enough
}

// check refuses, before anything is stopped, a target named by the user that
// cannot be written. The target we name ourselves has a way out.
func (s *store) check(ctx context.Context) error {
	switch {
	case s.path == stdoutName && term.IsTerminal(int(os.Stdout.Fd())):
		return &usageError{errors.New("-o -: standard output is a terminal, and a snapshot is not text")}
	case s.path == stdoutName && stdoutClosed():
		return &usageError{errors.New("-o -: standard output is closed")}
	case s.path == stdoutName || !s.given:
		return nil
	}
	err := saveOrder{Path: []byte(s.path), Replace: true, Look: true}.ask(ctx, nil, lookLimit)
	if errors.Is(err, errStalled) || errors.Is(err, errNoProcess) {
		return nil
	}
	return err
}

// save writes the snapshot, to the target or else to memory (C3). It returns
// where it is, "" for nowhere, and what was wrong with the target.
func (s *store) save(ctx context.Context, data *os.File) (where string, err error) {
	if s.path == stdoutName {
		err = s.toStdout(ctx, data)
	} else {
		err = saveOrder{Path: []byte(s.path), Replace: s.given}.ask(ctx, data, s.timeout)
	}
	if err == nil {
		return s.path, nil
	}
	var stop *interruptedError
	if errors.As(err, &stop) {
		return "", fmt.Errorf("%s: not written: %w", s.path, err)
	}
	if errors.Is(err, errStalled) {
		err = fmt.Errorf("%w. Ways out: -o - (standard output), -o /dev/shm/%s (memory)", err, s.spare)
	}
	if s.noSpare {
		return "", err
	}
	for _, dir := range spareDirs() {
		path, spareErr := s.toSpare(ctx, dir, data)
		if spareErr == nil {
			return path, err
		}
		err = errors.Join(err, spareErr)
	}
	return "", err
}

// toSpare writes to a place of last resort, which is everybody's: whoever guessed
// the name and took it does not keep the snapshot from another.
func (s *store) toSpare(ctx context.Context, dir string, data *os.File) (path string, err error) {
	path = filepath.Join(dir, s.spare)
	err = saveOrder{Path: []byte(path)}.ask(ctx, data, s.timeout)
	if errors.Is(err, errTarget) {
		stem, ext := splitExt(s.spare)
		path = filepath.Join(dir, stem+"-"+rand.Text()+ext)
		err = saveOrder{Path: []byte(path)}.ask(ctx, data, s.timeout)
	}
	return path, err
}

// spareDirs are where a snapshot goes that its target refuses: memory, then
// wherever temporary files go.
func spareDirs() []string {
	dirs := []string{"/dev/shm"}
	if tmp := os.TempDir(); tmp != dirs[0] {
		dirs = append(dirs, tmp)
	}
	return dirs
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

// toStdout copies to standard output. A slow reader is waited for, an absent
// one is an error.
func (s *store) toStdout(ctx context.Context, data *os.File) error {
	st, err := data.Stat()
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() {
		n, err := io.Copy(os.Stdout, io.NewSectionReader(data, 0, st.Size()))
		if err != nil {
			err = fmt.Errorf("standard output: write at byte %d of %d: %w", n, st.Size(), show.WithoutPath(err))
		}
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// readerGone says that whoever read our output has seen enough.
func readerGone(err error) bool { return errors.Is(err, unix.EPIPE) }
