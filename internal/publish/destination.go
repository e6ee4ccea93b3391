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

	"stackshot/internal/show"
)

// Stdout is the path that means standard output.
const Stdout = "-"

// lookLimit is how long Check waits for the answer whether a target can be written. If there
// is none, the capture goes on: the target may answer later.
const lookLimit = time.Second

// Destination is where a snapshot goes.
type Destination struct {
	Writer
	Path         string // as the user gave it, or Stdout
	LastResort   string // file name in the place of last resort
	Given        bool   // the user named the file: a regular file of the same user is replaced
	NoLastResort bool   // the place of last resort is not used

	spared *int // by Save: files in the place of last resort; nil: they are not counted
}

// Check refuses, before anything is stopped, a target that the user named and that cannot be
// written. If we named the target, Save has a way out. Errors: as of Save.
func (d *Destination) Check(ctx context.Context) error {
	if d.Path == Stdout || !d.Given {
		return nil
	}
	err := d.ask(ctx, order{Path: []byte(d.Path), Replace: true, Look: true}, nil, lookLimit)
	if errors.Is(err, ErrStalled) || errors.Is(err, ErrNoProcess) {
		return nil
	}
	return err
}

// Save writes the snapshot, to the target or else to memory (invariant 2). It returns
// where it is, "" for nowhere, and what was wrong with the target: ErrTarget, ErrStalled,
// ErrNoProcess, an errno, the context's cause.
func (d *Destination) Save(ctx context.Context, s *Spool) (where string, err error) {
	if _, err := s.Size(); err != nil {
		return "", err
	}
	if d.Path == Stdout {
		err = toStdout(ctx, s.file)
	} else {
		err = d.write(ctx, d.Path, d.Given, s)
	}
	if err == nil {
		return d.Path, nil
	}
	if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		return "", fmt.Errorf("%s: not written: %w", d.Path, err)
	}
	if errors.Is(err, ErrStalled) {
		err = fmt.Errorf("%w. Ways out: -o - (standard output), -o /dev/shm/%s (memory)", err, d.LastResort)
	}
	if d.NoLastResort {
		return "", err
	}
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
