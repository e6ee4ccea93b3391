package snapshot

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"stackshot/internal/engine"
	"stackshot/internal/testneed"

	"golang.org/x/sys/unix"
)

const (
	otherUser  = 65534
	otherGroup = 65533
)

// asUser runs f on a thread that the file system takes for somebody without rights.
func asUser(gid int, f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		unix.Setfsgid(gid)
		unix.Setfsuid(otherUser)
		f()
	}()
	<-done
}

// runDir makes a /run that users may enter; its lock is at path.
func runDir(t *testing.T) (path, shared string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	dir, err := os.MkdirTemp("", "stackshot-run-")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir + "/stackshot.lock", dir + "/stackshot"
}

func makeShared(t *testing.T, dir string, uid int, mode os.FileMode) {
	t.Helper()
	if err := errors.Join(os.Mkdir(dir, mode), os.Chmod(dir, mode), os.Chown(dir, uid, otherGroup)); err != nil {
		t.Fatal(err)
	}
}

// Without the directory the lock is root's alone: others go on without it, and are
// told why.
func TestLockIsRoots(t *testing.T) {
	testneed.Live(t)
	path, _ := runDir(t)
	unlock, err := lockMachine(t.Context(), path, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	if st, err := os.Stat(path); err != nil || st.Mode() != 0o600 {
		t.Errorf("%v, %v", st, err)
	}
	asUser(otherGroup, func() {
		if _, err := lockMachine(t.Context(), path, 0); !errors.Is(err, ErrNoLock) || !errors.Is(err, unix.EACCES) || !strings.Contains(err.Error(), path) {
			t.Errorf("another user: %v", err)
		}
	})
}

// In the directory root and the members of its group take turns, whoever made the
// file and under whatever umask; others go on without.
func TestLockOfAGroup(t *testing.T) {
	testneed.Live(t)
	defer unix.Umask(unix.Umask(0o077))
	path, shared := runDir(t)
	makeShared(t, shared, 0, 0o750)
	unlock, err := lockMachine(t.Context(), path, 0)
	if err != nil {
		t.Fatal(err)
	}
	asUser(otherGroup, func() {
		if _, err := lockMachine(t.Context(), path, 0); !errors.Is(err, ErrBusy) {
			t.Errorf("a member beside root: %v", err)
		}
	})
	unlock()
	asUser(otherGroup, func() { unlock, err = lockMachine(t.Context(), path, 0) })
	if err != nil {
		t.Fatalf("a member alone: %v", err)
	}
	if _, err := lockMachine(t.Context(), path, 50*time.Millisecond); !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), "pid "+strconv.Itoa(os.Getpid())) {
		t.Errorf("root beside a member: %v", err)
	}
	asUser(otherUser, func() {
		if _, err := lockMachine(t.Context(), path, 0); !errors.Is(err, ErrNoLock) || !strings.Contains(err.Error(), shared) {
			t.Errorf("no member: %v", err)
		}
	})
	unlock()
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("there are two locks: %v", err)
	}
}

// A directory that is anybody's is no meeting place, and nothing that lies under
// the lock's name is written through, or waited for.
func TestLockOfHostileShapes(t *testing.T) {
	testneed.Live(t)
	for name, c := range map[string]struct {
		make func(path, shared, victim string) error
		want bool // there is a lock all the same
	}{
		"directory of a user":   {func(_, shared, _ string) error { makeShared(t, shared, otherUser, 0o755); return nil }, true},
		"directory of everyone": {func(_, shared, _ string) error { makeShared(t, shared, 0, 0o777|os.ModeSticky); return nil }, true},
		"link for a directory":  {func(_, shared, _ string) error { return os.Symlink("/tmp", shared) }, true},
		"file for a directory":  {func(_, shared, _ string) error { return os.WriteFile(shared, nil, 0o600) }, true},
		"link":                  {func(path, _, victim string) error { return os.Symlink(victim, path) }, false},
		"hard link":             {func(path, _, victim string) error { return os.Link(victim, path) }, false},
		"fifo":                  {func(path, _, _ string) error { return unix.Mkfifo(path, 0o600) }, false},
		"directory":             {func(path, _, _ string) error { return os.Mkdir(path, 0o755) }, false},
		"hard link in the directory": {func(_, shared, victim string) error {
			makeShared(t, shared, 0, 0o770)
			return os.Link(victim, shared+"/lock")
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			path, shared := runDir(t)
			victim := strings.TrimSuffix(path, "stackshot.lock") + "victim"
			if err := errors.Join(os.WriteFile(victim, []byte("victim"), 0o600), c.make(path, shared, victim)); err != nil {
				t.Fatal(err)
			}
			unlock, err := lockMachine(t.Context(), path, 0)
			if (err == nil) != c.want || err != nil && !errors.Is(err, ErrNoLock) {
				t.Errorf("%v", err)
			}
			if err == nil {
				if b, err := os.ReadFile(path); !strings.HasPrefix(string(b), "pid ") {
					t.Errorf("the lock is not %s, which holds %q, %v", path, b, err)
				}
				unlock()
			}
			if b, err := os.ReadFile(victim); string(b) != "victim" {
				t.Errorf("the victim holds %q, %v", b, err)
			}
		})
	}
}

// Whoever has a lease on the file keeps nobody from a capture.
func TestLockUnderALease(t *testing.T) {
	testneed.Live(t)
	path, _ := runDir(t)
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_WRLCK); err != nil {
		t.Fatal(err)
	}
	if _, err := lockMachine(t.Context(), path, 0); !errors.Is(err, ErrNoLock) {
		t.Errorf("%v", err)
	}
}

// Captures of several processes at once all finish whole, one after the other.
func TestCapturesTakeTurns(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	requireBPF(t)
	if os.Getenv("STACKSHOT_TEST_TURN") != "" {
		s := openTest(t, Options{}, engine.Hooks{})
		for range 5 {
			if r, _ := s.mustTake(t); !r.Whole() {
				t.Fatalf("not whole: %+v", r)
			}
		}
		return
	}
	var cmds []*exec.Cmd
	var outs []*bytes.Buffer
	for range 3 {
		cmd, out := exec.Command(os.Args[0], "-test.run=^TestCapturesTakeTurns$"), new(bytes.Buffer)
		cmd.Env = append(os.Environ(), "STACKSHOT_TEST_TURN=1")
		cmd.Stdout, cmd.Stderr = out, out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		cmds, outs = append(cmds, cmd), append(outs, out)
	}
	for i, cmd := range cmds {
		if err := cmd.Wait(); err != nil {
			t.Errorf("process %d: %v\n%s", i, err, outs[i])
		}
	}
}
