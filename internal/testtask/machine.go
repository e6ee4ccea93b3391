//go:build linux && (amd64 || arm64)

package testtask

import (
	"errors"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// machineLock is the file whose lock admits one capture per machine.
const machineLock = "/run/stackshot.lock"

// HoldMachine takes the machine's capture lock until the returned function or
// the test's cleanup gives it back, so that a hog of one package does not spoil
// a capture of another. Not for a test that itself captures: that takes the
// lock on its own.
func HoldMachine(tb testing.TB) (release func()) {
	tb.Helper()
	f, err := os.OpenFile(machineLock, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		tb.Fatalf("testtask: %v", err)
	}
	tb.Cleanup(func() { f.Close() })
	whole := unix.Flock_t{Type: unix.F_WRLCK}
	err = waitFor(time.Minute, func() (bool, error) {
		err := unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &whole)
		if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		tb.Fatalf("testtask: lock of %s: %v", machineLock, err)
	}
	return func() { f.Close() }
}
