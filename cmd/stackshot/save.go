package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"stackshot/internal/mounts"
	"stackshot/internal/spawn"
)

// errStalled says that a file system did not answer in time.
var errStalled = errors.New("its file system does not answer")

// ask has an order carried out under a time limit, which begins when there is a
// process that does so. Errors: *saveError, of kind errTarget where the target is
// refused; errStalled; errNoProcess; the context's cause.
func (o saveOrder) ask(ctx context.Context, data *os.File, limit time.Duration) error {
	h, why := o.startHelper(ctx, data)
	if why != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("%s: no answer within %v: %w", o.Path, limit, errStalled))
	defer cancel()
	if why != nil {
		return o.askThread(ctx, data, why)
	}
	answer := make(chan error, 1)
	go func() { answer <- h.answer(o.Path) }()
	select {
	case err := <-answer:
		h.Conn.Close()
		h.Reap() // it has said its word and exits
		return err
	case <-ctx.Done():
		if h.giveUp(answer) {
			return nil // it was done by then
		}
		return context.Cause(ctx)
	}
}

// errNoProcess says that there is no process to touch a file system that may hang.
var errNoProcess = errors.New("no helper process, and its file system may hang")

// askThread is the way where no process can be started: a thread of ours, left
// behind if it hangs. That would outlive us (C2), so it goes only where that is not
// to be expected.
func (o saveOrder) askThread(ctx context.Context, data *os.File, why error) error {
	if on := mayHang(o.Path); on != "" {
		return fmt.Errorf("%s: %w: %s (%w)", o.Path, errNoProcess, on, why)
	}
	if !o.Look {
		say(os.Stderr, "%s is written without a helper process: %v", o.Path, why)
	}
	var t target
	answer := make(chan error, 1)
	go func() { answer <- answerOf(o.carryOut(&t, data)).err() }()
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
	}
	t.cancel()
	select {
	case err := <-answer:
		if err == nil {
			return nil // it was done by then
		}
	case <-time.After(lastWord):
		if t.named.Load() {
			return nil
		}
	}
	return context.Cause(ctx)
}

// mayHang says what file system on the way to path may hang, "" for none. It touches
// none.
func mayHang(path string) string {
	if !filepath.IsAbs(path) {
		dir, err := os.Readlink("/proc/self/cwd")
		if err != nil {
			return err.Error()
		}
		path = filepath.Join(dir, path)
	}
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err.Error()
	}
	way := mounts.Parse(b).Way(filepath.Clean(path))
	if len(way) == 0 {
		return "it is not known"
	}
	for _, m := range way {
		if m.Kind() != "" {
			return m.String()
		}
	}
	return ""
}

// helper is a running helper process.
type helper struct{ *spawn.Child }

// startHelper runs this program again and gives it the order. Nothing here looks at
// a path of the user's; data nil: there is none.
func (o saveOrder) startHelper(ctx context.Context, data *os.File) (*helper, error) {
	if err := pidsLeft(helperPids); err != nil {
		return nil, err // it would crash
	}
	c, err := spawn.Start(ctx, spawn.Limit, []string{"/proc/self/exe", saveVerb, "--", o.Path}, data, nil)
	if err != nil {
		return nil, err
	}
	if err := json.NewEncoder(c.Conn).Encode(o); err != nil {
		(&helper{c}).giveUp(nil)
		return nil, err
	}
	return &helper{c}, nil
}

// answer reads the helper's word, a line, and does not wait for its end: a thread of it
// may still sync the directory. What else it may say is its last words.
func (h *helper) answer(path string) error {
	const enough = 16 << 10
	b, err := bufio.NewReader(io.LimitReader(h.Conn, enough)).ReadBytes('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: helper process: %w", path, err)
	}
	var a saveAnswer
	if err := json.Unmarshal(b, &a); err != nil {
		return fmt.Errorf("%s: helper process ended without an answer: %q", path, strings.TrimSuffix(string(b), "\n"))
	}
	return a.err()
}

// giveUp ends a helper: politely, so that it removes an unfinished file, then
// for good. True: it has done what it was asked. A helper that hangs in the kernel
// stays until its file system answers; nobody waits for it.
func (h *helper) giveUp(answer <-chan error) (done bool) {
	h.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-answer:
		done = err == nil
	case <-time.After(3 * lastWord): // it may have to wait for a CPU
		h.Process.Kill()
	}
	h.End()
	h.Reap()
	return done
}
