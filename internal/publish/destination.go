package publish

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/show"
)

// Stdout is the path that means standard output.
const Stdout = "-"

// lookLimit is how long Check waits for the answer whether a target can be written. If there
// is none, the capture goes on: the target may answer later.
const lookLimit = time.Second

// How long, after the caller's context has ended, the target may still take the file, and then the
// places of last resort: a signal ends the waiting, and loses nothing that was taken.
const targetGrace = time.Second

var spareGrace = 1500 * time.Millisecond // a test on a busy machine sets a longer one

// Outlive gives a context that ends some time after ctx, for the same cause.
func Outlive(ctx context.Context, by time.Duration) (context.Context, func()) {
	longer, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		time.AfterFunc(by, func() { cancel(context.Cause(ctx)) })
	})
	return longer, func() {
		stop()
		cancel(nil)
	}
}

// Destination is where a snapshot goes.
type Destination struct {
	Writer
	Path         string // as the user gave it, or Stdout
	LastResort   string // file name in the place of last resort
	Given        bool   // the user named the file: a regular file of the same user is replaced
	NoLastResort bool   // the place of last resort is not used

	spared *int // by Save: files in the place of last resort; nil: they are not counted
}

// mistakes are the errnos of a path that no snapshot can ever have. Others are of the file
// system, which may be read-only or broken just because the machine hangs.
var mistakes = []unix.Errno{unix.ENOENT, unix.ENOTDIR, unix.ENAMETOOLONG, unix.ELOOP, unix.EACCES, unix.EPERM}

// Check refuses, before anything is stopped, a target that the user named by mistake. If we named
// the target, or it cannot be written for another reason, Save has a way out, unless the place of
// last resort is not used. Errors: as of Save.
func (d *Destination) Check(ctx context.Context) error {
	if d.Path == Stdout || !d.Given {
		return nil
	}
	err := d.ask(ctx, order{Path: []byte(d.Path), Replace: true, Look: true}, nil, lookLimit)
	switch {
	case err == nil, errors.Is(err, ErrStalled), errors.Is(err, ErrNoProcess):
		return nil // it may answer later
	case ctx.Err() != nil, d.NoLastResort, errors.Is(err, ErrTarget), slices.ContainsFunc(mistakes, func(e unix.Errno) bool { return errors.Is(err, e) }):
		return err
	}
	return nil // the file system may be mended until then
}

// Save writes the snapshot, to the target or else to memory (invariant 2). It returns
// where it is, "" for nowhere, and what was wrong with the target: ErrTarget, ErrStalled,
// ErrNoProcess, an errno, the context's cause.
func (d *Destination) Save(ctx context.Context, s *Spool) (where string, err error) {
	if _, err := s.Size(); err != nil {
		return "", err
	}
	if err = d.toTarget(ctx, s); err == nil {
		return d.Path, nil
	}
	if d.NoLastResort {
		return "", err
	}
	ctx, stop := Outlive(ctx, spareGrace)
	defer stop()
	for _, dir := range slices.Compact([]string{"/dev/shm", os.TempDir()}) { // memory, then the place for temporary files
		path, spareErr := d.toSpare(ctx, dir, s)
		if spareErr == nil {
			if d.spared != nil {
				*d.spared++
			}
			return path, err
		}
		err = errors.Join(err, spareErr)
	}
	return "", err
}

func (d *Destination) toTarget(ctx context.Context, s *Spool) (err error) {
	ctx, stop := Outlive(ctx, targetGrace)
	defer stop()
	name := d.Path
	if d.Path == Stdout {
		name, err = "standard output", toStdout(ctx, s.file)
	} else {
		err = d.write(ctx, d.Path, d.Given, s)
	}
	switch {
	case err != nil && ctx.Err() != nil && errors.Is(err, context.Cause(ctx)):
		return fmt.Errorf("%s: not written: %w", name, err)
	case errors.Is(err, unix.EROFS):
		return readOnly{err}
	case errors.Is(err, ErrStalled):
		return fmt.Errorf("%w. Ways out: -o - (standard output), -o /dev/shm/%s (memory)", err, d.LastResort)
	}
	return err
}

// readOnly is the error of a target, and of no place of last resort.
type readOnly struct{ error }

func (e readOnly) Unwrap() error        { return e.error }
func (e readOnly) Is(target error) bool { return target == ErrReadOnly }

func (d *Destination) write(ctx context.Context, path string, replace bool, s *Spool) error {
	return d.ask(ctx, order{Path: []byte(path), Replace: replace}, s.file, d.Timeout)
}

// Remove removes a file that Save wrote, if it is a regular file of the same user. Errors: as of Save.
func (w *Writer) Remove(ctx context.Context, path string) error {
	return w.ask(ctx, order{Path: []byte(path), Replace: true, Remove: true}, nil, lookLimit)
}

// toSpare writes to a place of last resort. Everybody may write there, so somebody may have
// guessed the name and taken it: then the file gets a random one.
func (d *Destination) toSpare(ctx context.Context, dir string, s *Spool) (path string, err error) {
	path = filepath.Join(dir, d.LastResort)
	err = d.write(ctx, path, false, s)
	if errors.Is(err, ErrTarget) {
		stem, ext := splitExt(d.LastResort)
		path = filepath.Join(dir, stem+"-"+rand.Text()+ext)
		err = d.write(ctx, path, false, s)
	}
	return path, err
}

// toStdout copies to standard output. It waits for a slow reader; it is an error if there is
// none.
func toStdout(ctx context.Context, data *os.File) error {
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
