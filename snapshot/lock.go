package snapshot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"stackshot/internal/lockfile"
)

// LockMachine waits for the machine at most `wait`, then fails with ErrBusy
// and names the holder. Who came first gets it first. Every capture that stops the machine
// takes the lock; so does a test that holds the machine by other means. It is an
// open-file-description lock (fcntl F_OFD_SETLK), so it ends with the file, however the holder
// ends. Errors: ErrNoLock too.
func LockMachine(ctx context.Context, wait time.Duration) (unlock func(), err error) {
	return lockMachine(ctx, lockPath, wait)
}

func lockMachine(ctx context.Context, path string, wait time.Duration) (unlock func(), err error) {
	f, err := openLock(path)
	if err != nil {
		return nil, err
	}
	if err := await(ctx, f, wait); err != nil {
		f.Close()
		return nil, err
	}
	f.Truncate(0)
	fmt.Fprintf(f, "pid %d (%s) since %s\n", os.Getpid(), filepath.Base(os.Args[0]), time.Now().UTC().Format(time.RFC3339))
	return func() { f.Truncate(0); f.Close() }, nil
}

// await asks for the lock until it is our turn, and when the time is over once more, out of turn.
func await(ctx context.Context, f *os.File, wait time.Duration) error {
	deadline := time.Now().Add(wait)
	queue := lockfile.Queue{File: f}
	for {
		late := !time.Now().Before(deadline)
		err := queue.Lock(!late)
		if err == nil {
			return nil
		}
		if !errors.Is(err, lockfile.ErrHeld) {
			return fmt.Errorf("%w: %w", ErrNoLock, err)
		}
		if late {
			return fmt.Errorf("%w: %s is held by %s (waited %v: --lock-wait)", ErrBusy, f.Name(), holder(f), wait)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func holder(f *os.File) string { return cmp.Or(lockfile.Text(f), "an unnamed process") }
