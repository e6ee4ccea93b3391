//go:build linux && (amd64 || arm64)

package spawn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// heldFor is for how long no process is started after one that did not begin.
const heldFor = time.Minute

// starts keeps account of all starts.
var starts = struct {
	turn chan struct{} // holds a token while one is under way

	mu    sync.Mutex
	until time.Time // by mu: nothing is started before
	err   error     // by mu: because of this
	kept  []*table  // by mu: children that were given up may still use them
}{turn: make(chan struct{}, 1)}

// held says why no process is started now; nil: one may be started.
func held() error {
	starts.mu.Lock()
	defer starts.mu.Unlock()
	if time.Now().Before(starts.until) {
		return starts.err
	}
	return nil
}

// Start runs the program argv[0], a path, without an environment and in a session of
// its own, so that a ^C at the terminal reaches us alone. Its file 0 is a socket, the
// others are files, nil for the socket again; it has no other of ours, so whoever waits
// for the end of our output does not wait for it. Start returns when the program has called
// Serve. Errors: ErrHeld; the context's cause; those of clone and execve.
func Start(ctx context.Context, limit time.Duration, argv []string, files ...*os.File) (*Child, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("%w: no sign of it within %v", ErrHeld, limit))
	defer cancel()
	select {
	case starts.turn <- struct{}{}:
		defer func() { <-starts.turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if err := held(); err != nil {
		return nil, err
	}
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	all := []*os.File{theirs}
	for _, f := range files {
		all = append(all, cmp.Or(f, theirs))
	}
	p, t, err := launch(argv, all)
	theirs.Close()
	if err != nil {
		ours.Close()
		return nil, fmt.Errorf("start a helper process: %w", err)
	}
	c := newChild(p, ours)
	err = c.await(ctx)
	runtime.KeepAlive(t)
	if err != nil {
		c.giveUp(t, err)
		return nil, err
	}
	return c, nil
}

// await waits for the child's first byte.
func (c *Child) await(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { c.Conn.SetReadDeadline(time.Now()) })
	var b [1]byte
	n, err := c.Conn.Read(b[:])
	switch inTime := stop(); {
	case !inTime || errors.Is(err, os.ErrDeadlineExceeded):
		return context.Cause(ctx)
	case n == 1:
		return nil
	}
	// It has ended: execve's errno is the code.
	c.Process.Kill()
	if st, err := c.Process.Wait(); err == nil && st.ExitCode() > 0 {
		return fmt.Errorf("start a helper process: execve: %w", syscall.Errno(st.ExitCode()))
	}
	return errors.New("start a helper process: it ended at once")
}

// giveUp leaves a child that did not begin. The child ends when what holds it lets it go.
func (c *Child) giveUp(t *table, why error) {
	c.Process.Kill()
	go c.Process.Wait()
	c.End()
	starts.mu.Lock()
	defer starts.mu.Unlock()
	starts.kept = append(starts.kept, t)
	if errors.Is(why, ErrHeld) {
		starts.until, starts.err = time.Now().Add(heldFor), why
	}
}
