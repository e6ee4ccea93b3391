package publish

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/limits"
	"stackshot/internal/mounts"
	"stackshot/internal/spawn"
)

// Why there is no file. Beside these there are the errnos of the file system.
var (
	ErrTarget    = errors.New("cannot be a snapshot's target") // it is of a kind that is never written
	ErrStalled   = errors.New("its file system does not answer")
	ErrReadOnly  = errors.New("the target's file system is read-only")
	ErrNoProcess = errors.New("no helper process, and its file system may hang")
)

// processPids is how many process ids a helper process takes at most, its threads' too.
const processPids = 10

// lastWord is how long the writer of a file may take to answer after it was cancelled.
const lastWord = 300 * time.Millisecond

// order asks the helper process to write the snapshot, which is its file 1.
type order struct {
	Path    []byte // need not be UTF-8
	Replace bool   // replace a regular file of the same user
	Look    bool   // write nothing, say only whether it could be written
	Remove  bool   // write nothing, remove the file instead: a regular file of the same user
}

// answer says what became of an order. It is an error if not OK.
type answer struct {
	OK      bool
	Refused bool // the target is of a kind that is never written
	Text    string
	Errno   unix.Errno // 0: none
}

func (a *answer) Error() string { return a.Text }

func (a *answer) Is(target error) bool {
	return target == ErrTarget && a.Refused || target == a.Errno && a.Errno != 0
}

func answerOf(err error) (a answer) {
	if err == nil {
		return answer{OK: true}
	}
	errors.As(err, &a.Errno)
	a.Text, a.Refused = err.Error(), errors.Is(err, ErrTarget)
	return a
}

// Serve is all that a program of Writer.Command does: it writes one file for the process
// that started it. conn is its file 0, data its file 1. SIGTERM cancels the writing.
func Serve(conn io.ReadWriter, data *os.File) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	return spawn.Serve(conn, func(o order) answer { return o.carryOut(ctx, data) })
}

// carryOut does what the order says, on a goroutine that may hang for good. After ctx ends
// it answers within lastWord. If the file has its name by then, it was written, even if
// its directory is not on the disk yet.
func (o order) carryOut(ctx context.Context, data *os.File) answer {
	t := newTarget(string(o.Path), o.Replace)
	var did error // written before ended is closed
	ended := make(chan struct{})
	defer t.closeAfter(ended) // and after cancel
	go func() {
		defer close(ended)
		did = o.do(t, data)
	}()
	select {
	case <-ended:
		return answerOf(did)
	case <-ctx.Done():
	}
	t.cancel()
	err := t.failed("write", unix.ECANCELED)
	select {
	case <-ended:
		err = did
	case <-t.named:
	case <-time.After(lastWord):
	}
	select {
	case <-t.named:
		err = nil
	default:
	}
	return answerOf(err)
}

// do may hang for good.
func (o order) do(t *target, data *os.File) error {
	err := t.open()
	switch {
	case err != nil || o.Look:
		return err
	case o.Remove:
		return t.remove()
	}
	return t.write(data)
}

// Writer starts a process for each file, which writes it.
type Writer struct {
	Command []string          // a program that calls Serve; "--" and the path are added, for people
	Timeout time.Duration     // how long the target's file system may take for one file
	Warn    func(text string) // hears that a file is written without such a process; may be nil
}

// ask has a process or a thread carry out an order. The time limit counts from when the
// process has begun. Errors:
// *answer, with ErrTarget where the target is refused; ErrStalled; ErrNoProcess; the
// context's cause.
func (w *Writer) ask(ctx context.Context, o order, data *os.File, limit time.Duration) error {
	c, why := w.start(ctx, o, data)
	if why != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("%s: no answer within %v: %w", o.Path, limit, ErrStalled))
	defer cancel()
	var a answer
	var err error
	if why != nil {
		a, err = w.askThread(ctx, o, data, why)
	} else {
		a, err = askProcess(ctx, c, o)
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

// start runs the helper process; it does not touch the user's path. data is nil if nothing is
// to be written. If the process crashes, it prints the reason to its file 2,
// which is the socket.
func (w *Writer) start(ctx context.Context, o order, data *os.File) (*spawn.Child, error) {
	if err := (limits.Machine{}).NeedPids(processPids); err != nil {
		return nil, err // it would crash
	}
	return spawn.Start(ctx, spawn.Limit, slices.Concat(w.Command, []string{"--", string(o.Path)}), data, nil)
}

// askProcess gives the helper up when ctx ends: the helper may first remove an unfinished file
// and say whether it was done, then it is killed.
func askProcess(ctx context.Context, c *spawn.Child, o order) (a answer, err error) {
	stop := context.AfterFunc(ctx, func() { c.GiveUp(3 * lastWord) }) // it may have to wait for a CPU
	err = c.Ask(o, &a)
	stop()
	c.Leave()
	return a, err
}

// askThread carries out an order on a thread of this process, where no process can be
// started. A thread that hangs would outlive us (invariant 1), so it writes only where no
// file system on the way may hang.
func (w *Writer) askThread(ctx context.Context, o order, data *os.File, why error) (answer, error) {
	if on := mayHang(string(o.Path)); on != "" {
		return answer{}, fmt.Errorf("%w: %s (%w)", ErrNoProcess, on, why)
	}
	if !o.Look && !o.Remove && w.Warn != nil {
		w.Warn(fmt.Sprintf("%s is written without a helper process: %v", o.Path, why))
	}
	return o.carryOut(ctx, data), nil
}

// mayHang says which file system on the way to path may hang, "" for none. It touches none of
// them.
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
