package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"
)

// errStalled says that a file system did not answer in time.
var errStalled = errors.New("its file system does not answer")

// ask has an order carried out under a time limit. Errors: *saveError, of kind
// errTarget where the target is refused; errStalled; the context's cause.
func (o saveOrder) ask(ctx context.Context, data *os.File, limit time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("%s: no answer within %v: %w", o.Path, limit, errStalled))
	defer cancel()
	h, err := o.startHelper(data)
	if err != nil {
		return o.askThread(ctx, data)
	}
	defer h.pipe.Close()
	answer := make(chan error, 1)
	go func() { answer <- h.answer(o.Path) }()
	select {
	case err := <-answer:
		go h.process.Wait() // it has said its word and exits
		return err
	case <-ctx.Done():
		h.giveUp(answer)
		return context.Cause(ctx)
	}
}

// askThread is the way where no process can be started: a thread of ours, left
// behind if it hangs.
func (o saveOrder) askThread(ctx context.Context, data *os.File) error {
	answer := make(chan error, 1)
	go func() { answer <- answerOf(o.carryOut(new(target), data)).err() }()
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// helper is a running helper process.
type helper struct {
	process *os.Process
	pipe    *os.File
}

// startHelper runs this program again. Its session is its own, so that a ^C at
// the terminal reaches us alone and we decide. Nothing here looks at a path of
// the user's; data nil: file 0 is the pipe as well, and never read.
func (o saveOrder) startHelper(data *os.File) (*helper, error) {
	if err := pidsLeft(helperPids); err != nil {
		return nil, err // it would crash
	}
	order, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer w.Close()
	if data == nil {
		data = w
	}
	p, err := os.StartProcess("/proc/self/exe", []string{"stackshot", saveVerb, string(order)}, &os.ProcAttr{
		Env:   []string{},
		Files: []*os.File{data, w, w},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		r.Close()
		return nil, err
	}
	return &helper{p, r}, nil
}

// answer reads the helper's word; what else it may say is its last words.
func (h *helper) answer(path string) error {
	const enough = 16 << 10
	b, err := io.ReadAll(io.LimitReader(h.pipe, enough))
	if err != nil {
		return fmt.Errorf("%s: helper process: %w", path, err)
	}
	var a saveAnswer
	if err := json.Unmarshal(b, &a); err != nil {
		first, _, _ := strings.Cut(string(b), "\n")
		return fmt.Errorf("%s: helper process ended without an answer: %q", path, first)
	}
	return a.err()
}

// giveUp ends a helper: politely, so that it removes an unfinished file, then
// for good. A helper that hangs in the kernel stays until its file system
// answers; nobody waits for it.
func (h *helper) giveUp(answer <-chan error) {
	h.process.Signal(syscall.SIGTERM)
	select {
	case <-answer:
		h.process.Wait()
	case <-time.After(200 * time.Millisecond):
		h.process.Kill()
		h.process.Release()
	}
}
