package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/mounts"
	"stackshot/internal/spawn"
)

// errStalled says that a file system did not answer in time.
var errStalled = errors.New("its file system does not answer")

// errNoProcess says that there is no process to touch a file system that may hang.
var errNoProcess = errors.New("no helper process, and its file system may hang")

// lastWord is how long whoever writes a file may take to end after it is cancelled.
const lastWord = 300 * time.Millisecond

// saveOrder is what the helper process is asked: to write the snapshot, its file 1.
type saveOrder struct {
	Path    []byte // need not be UTF-8
	Replace bool   // a regular file of ours that is there already may go
	Look    bool   // say only whether it could be written
}

// saveAnswer is what became of an order; an error where that is not OK.
type saveAnswer struct {
	OK      bool
	Refused bool // the target is of a kind that is never written
	Text    string
	Errno   unix.Errno // 0: none
}

func (a *saveAnswer) Error() string { return a.Text }

func (a *saveAnswer) Is(target error) bool {
	return target == errTarget && a.Refused || target == a.Errno && a.Errno != 0
}

func answerOf(err error) (a saveAnswer) {
	if err == nil {
		return saveAnswer{OK: true}
	}
	errors.As(err, &a.Errno)
	a.Text, a.Refused = err.Error(), errors.Is(err, errTarget)
	return a
}

// serveSave is the helper process. SIGTERM cancels the order.
func serveSave(conn io.ReadWriter, data *os.File) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	return spawn.Serve(conn, func(o saveOrder) saveAnswer { return o.carryOut(ctx, data) })
}

// carryOut does what the order says, on a thread that may hang for good. Once ctx ends,
// it has lastWord to answer all the same. Where the file has its name by then the answer
// is that, though the directory may not be on the disk yet.
func (o saveOrder) carryOut(ctx context.Context, data *os.File) saveAnswer {
	t := newTarget(string(o.Path), o.Replace)
	done := make(chan error, 1)
	go func() {
		err := t.open()
		if err == nil && !o.Look {
			err = t.write(data)
		}
		done <- err
	}()
	select {
	case err := <-done:
		return answerOf(err)
	case <-ctx.Done():
	}
	t.cancel()
	select {
	case err := <-done:
		return answerOf(err)
	case <-t.named:
		return answerOf(nil)
	case <-time.After(lastWord):
		return answerOf(t.failed("write", unix.ECANCELED))
	}
}

// ask has an order carried out under a time limit, which begins when there is a
// process that does so. Errors: *saveAnswer, of kind errTarget where the target is
// refused; errStalled; errNoProcess; the context's cause.
func (o saveOrder) ask(ctx context.Context, data *os.File, limit time.Duration) error {
	c, why := o.start(ctx, data)
	if why != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("%s: no answer within %v: %w", o.Path, limit, errStalled))
	defer cancel()
	var a saveAnswer
	var err error
	if why != nil {
		a, err = o.askThread(ctx, data, why)
	} else {
		a, err = o.askProcess(ctx, c)
	}
	switch {
	case err == nil && a.OK:
		return nil // maybe just in time
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return fmt.Errorf("%s: %w", o.Path, err)
	}
	return &a
}

// start runs the helper process. Nothing here looks at a path of the user's; data nil:
// there is none. A crash prints its reason to file 2, the socket.
func (o saveOrder) start(ctx context.Context, data *os.File) (*spawn.Child, error) {
	if err := pidsLeft(helperPids); err != nil {
		return nil, err // it would crash
	}
	return spawn.Start(ctx, spawn.Limit, append(fileWriter[:len(fileWriter):len(fileWriter)], "--", string(o.Path)), data, nil)
}

// askProcess gives the helper up with ctx: politely, so that it removes an unfinished
// file and says if it was done, then for good. One that hangs in the kernel stays until
// its file system answers; nobody waits for it.
func (o saveOrder) askProcess(ctx context.Context, c *spawn.Child) (a saveAnswer, err error) {
	stop := context.AfterFunc(ctx, func() {
		c.Process.Signal(syscall.SIGTERM)
		c.Conn.SetReadDeadline(time.Now().Add(3 * lastWord)) // it may have to wait for a CPU
	})
	if err = c.Ask(o, &a); err != nil {
		c.Process.Kill()
	}
	stop()
	c.End()
	c.Reap()
	return a, err
}

// askThread is the way where no process can be started: a thread of ours, left
// behind if it hangs. That would outlive us (C2), so it goes only where that is not
// to be expected.
func (o saveOrder) askThread(ctx context.Context, data *os.File, why error) (saveAnswer, error) {
	if on := mayHang(string(o.Path)); on != "" {
		return saveAnswer{}, fmt.Errorf("%w: %s (%w)", errNoProcess, on, why)
	}
	if !o.Look {
		say(os.Stderr, "%s is written without a helper process: %v", o.Path, why)
	}
	return o.carryOut(ctx, data), nil
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
