package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/lockfile"
	"stackshot/internal/procfs"
	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
)

// waitsForLock is the child of lockChild: it says its name when it has the lock, and ends.
func waitsForLock(t *testing.T, path string) {
	fmt.Println("comes")
	unlock, err := lockMachine(t.Context(), path, testneed.Patience)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(os.Stderr, os.Getenv("STACKSHOT_TEST_NAME"))
	unlock()
	os.Exit(0)
}

// queueOf makes a lock that the test holds. queued waits until so many others are in its queue.
func queueOf(t *testing.T) (path string, unlock func(), queued func(n int)) {
	path = t.TempDir() + "/lock"
	unlock, err := lockMachine(t.Context(), path, 0)
	if err != nil {
		t.Fatal(err)
	}
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		t.Fatal(err)
	}
	return path, unlock, func(n int) {
		t.Helper()
		if err := testtask.WaitFor(testneed.Patience, func() (bool, error) {
			all, err := procfs.ParseLocks([]byte(slurp(t, "/proc/locks")))
			n := n
			for _, l := range all {
				if l.Inode == st.Ino && l.Start > 0 {
					n--
				}
			}
			return n == 0, err
		}); err != nil {
			t.Fatalf("%d places in the queue: %v\n%s", n, err, slurp(t, "/proc/locks"))
		}
	}
}

// lockChild starts a process that waits for the lock, and writes its name to out when it has it.
func lockChild(t *testing.T, path, name string, out *os.File) *child {
	cmd := again([]string{"-test.run=^TestLockByArrival$"}, "STACKSHOT_TEST_LOCK="+path, "STACKSHOT_TEST_NAME="+name)
	cmd.Stderr = out
	return startChild(t, cmd, "comes")
}

// Processes and sessions get the lock in the order in which they came. Who is killed, or gives
// up, leaves the queue.
func TestLockByArrival(t *testing.T) {
	testneed.Live(t)
	if path := os.Getenv("STACKSHOT_TEST_LOCK"); path != "" {
		waitsForLock(t, path)
	}
	path, unlock, queued := queueOf(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	first := lockChild(t, path, "1", w)
	queued(1)
	killed := lockChild(t, path, "killed", w)
	queued(2)
	ctx, cancel := context.WithCancel(t.Context())
	gone, mine := make(chan error), make(chan error)
	go func() {
		_, err := lockMachine(ctx, path, testneed.Patience)
		gone <- err
	}()
	queued(3)
	go func() { // a session of this process
		unlock, err := lockMachine(t.Context(), path, testneed.Patience)
		if err == nil {
			fmt.Fprint(w, "2")
			unlock()
		}
		mine <- err
	}()
	queued(4)
	children := []*child{first, lockChild(t, path, "3", w)}
	queued(5)
	killed.Process.Kill()
	queued(4)
	cancel()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	queued(3)
	children = append(children, lockChild(t, path, "4", w)) // its place is not one that became free
	queued(4)
	if _, err := lockMachine(t.Context(), path, 20*time.Millisecond); !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), fmt.Sprintf("pid %d ", os.Getpid())) {
		t.Errorf("time is over: %v", err)
	}
	queued(4)
	unlock()
	if err := <-mine; err != nil {
		t.Error(err)
	}
	for _, c := range children {
		if err := c.Wait(); err != nil {
			t.Error(err)
		}
	}
	killed.Wait()
	w.Close()
	if order, err := io.ReadAll(r); string(order) != "1234" || err != nil {
		t.Errorf("they had the lock in the order %q, %v", order, err)
	}
}

// Who is first and stopped does not keep others from a lock that is free: those whose time is over
// take it at once, others soon. It has its turn when it goes on.
func TestLockPastAStoppedWaiter(t *testing.T) {
	testneed.Live(t)
	path, unlock, queued := queueOf(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	c := lockChild(t, path, "goes on", w)
	w.Close()
	queued(1)
	c.Process.Signal(unix.SIGSTOP)
	var status unix.WaitStatus
	if _, err := unix.Wait4(c.pid, &status, unix.WUNTRACED, nil); err != nil || !status.Stopped() {
		t.Fatalf("the child did not stop: %v, %v", status, err)
	}
	unlock()
	for _, wait := range []time.Duration{0, 30 * time.Millisecond} {
		unlock, err := lockMachine(t.Context(), path, wait)
		if err != nil {
			t.Fatalf("it is free, and nobody comes: %v", err)
		}
		if _, err := lockMachine(t.Context(), path, wait); !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), fmt.Sprintf("pid %d ", os.Getpid())) {
			t.Errorf("behind it, and held: %v", err)
		}
		unlock()
	}
	unlock, err = lockMachine(t.Context(), path, testneed.Patience)
	if err != nil {
		t.Fatalf("it is free, and who is before us is stopped: %v", err)
	}
	unlock()
	queued(1)
	c.Process.Signal(unix.SIGCONT)
	if said, err := io.ReadAll(r); string(said) != "goes on" || err != nil {
		t.Errorf("the child says %q, %v", said, err)
	}
	if err := c.Wait(); err != nil {
		t.Error(err)
	}
}

// Versions of this program that know of no queue lock the whole file. They and ours keep each
// other out, and theirs has its turn when ours are done.
func TestLockBesideOneOfTheWholeFile(t *testing.T) {
	testneed.Live(t)
	path, unlock, queued := queueOf(t)
	old, err := lockfile.Open(unix.AT_FDCWD, path, path, 0o600, -1)
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	if err := lockfile.Lock(old); !errors.Is(err, lockfile.ErrHeld) {
		t.Errorf("beside ours: %v", err)
	}
	unlock()
	queued(0)
	if err := lockfile.Lock(old); err != nil {
		t.Fatalf("when ours is free: %v", err)
	}
	if _, err := lockMachine(t.Context(), path, 20*time.Millisecond); !errors.Is(err, ErrBusy) {
		t.Errorf("ours beside it: %v", err)
	}
	done := make(chan error)
	go func() {
		unlock, err := lockMachine(t.Context(), path, testneed.Patience)
		if err == nil {
			unlock()
		}
		done <- err
	}()
	old.Close()
	if err := <-done; err != nil {
		t.Errorf("ours after it: %v", err)
	}
}
