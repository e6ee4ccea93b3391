package testvm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"stackshot/internal/testvm/wire"
)

// Outcome is what the first process of a kernel sends over its wire while it runs a
// program. Its methods may be called from any goroutine.
type Outcome struct {
	whose string
	dir   string // of the program's files
	text  console
	exit  chan struct{} // closed with the exit code
	over  <-chan struct{}

	mu    sync.Mutex
	files inbox
	code  int
	peak  int64         // KiB
	took  time.Duration // of the program
	notes []string
	err   error
}

func newOutcome(whose, dir string) *Outcome {
	return &Outcome{whose: whose, dir: dir, files: inbox{dir: dir}, exit: make(chan struct{}), code: -1}
}

// frame takes the next frame; it is for one goroutine.
func (o *Outcome) frame(f wire.Frame) {
	if f.Kind == wire.Output {
		o.text.Write(f.Body)
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	switch f.Kind {
	case wire.Note:
		o.notes = append(o.notes, string(f.Body))
	case wire.File:
		o.err = errors.Join(o.err, o.files.add(f.Body))
	case wire.Used:
		var ms int64
		if _, err := fmt.Sscanf(string(f.Body), "%d %d", &o.peak, &ms); err != nil {
			o.err = errors.Join(o.err, fmt.Errorf("frame %q: %w", f.Body, err))
		}
		o.took = time.Duration(ms) * time.Millisecond
	case wire.Exit:
		code, err := strconv.Atoi(string(f.Body))
		if err != nil || o.code >= 0 {
			o.err = errors.Join(o.err, fmt.Errorf("exit frame %q after code %d", f.Body, o.code))
			return
		}
		o.code = code
		o.text.end()
		close(o.exit)
	}
}

// WaitLine waits for a line of the program's output that matches. It begins where the
// last WaitLine ended.
func (o *Outcome) WaitLine(ctx context.Context, re *regexp.Regexp) (string, error) {
	line, err := o.text.await(ctx, re, o.ended(ctx), o.whose)
	if err != nil {
		return "", o.explain(err)
	}
	return line, nil
}

// ended is closed when no more output comes.
func (o *Outcome) ended(ctx context.Context) <-chan struct{} {
	ch := make(chan struct{})
	go func() {
		defer close(ch)
		select {
		case <-o.exit:
		case <-o.over:
		case <-ctx.Done():
		}
	}()
	return ch
}

// Wait waits for the program's end and gives its exit code: 128 and the signal's number
// if one killed it, 127 if it did not start. The error is of the guest or the host: no
// exit code came, or a file could not be written.
func (o *Outcome) Wait(ctx context.Context) (int, error) {
	select {
	case <-o.exit:
	case <-o.over:
	case <-ctx.Done():
	}
	o.mu.Lock()
	code, err := o.code, o.err
	o.mu.Unlock()
	if code < 0 {
		err = errors.Join(err, fmt.Errorf("%s: no exit code; last line %q", o.whose, o.text.last()), ctx.Err())
	}
	if err != nil {
		err = o.explain(err)
	}
	return code, err
}

// Used is what the program had resident at most, bytes, and how long it ran. Both are known after Wait.
func (o *Outcome) Used() (peak int64, took time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.peak << 10, o.took
}

// explain adds what the first process could not do.
func (o *Outcome) explain(err error) error {
	if notes := o.Notes(); len(notes) > 0 {
		return fmt.Errorf("%w; set-up: %s", err, strings.Join(notes, "; "))
	}
	return err
}

// Lines is the output so far, stdout and stderr, by lines.
func (o *Outcome) Lines() []string { return o.text.all() }

// Notes is what the first process could not set up, a line each.
func (o *Outcome) Notes() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]string(nil), o.notes...)
}

// File is the path here of a file that the program left in /out. It is whole after Wait.
func (o *Outcome) File(name string) (string, error) {
	path := filepath.Join(o.dir, name)
	if _, err := os.Stat(path); err != nil {
		return "", o.explain(fmt.Errorf("%s sent no file: %w", o.whose, err))
	}
	return path, nil
}
