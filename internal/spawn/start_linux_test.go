//go:build linux && (amd64 || arm64)

package spawn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/testdelay"
	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
)

const echoWord = "__echo" // as the first argument: say hello, then give back what comes

func TestMain(m *testing.M) {
	testdelay.MaybeExec()
	if len(os.Args) > 1 && os.Args[1] == echoWord {
		os.Stdin.Write([]byte{1})
		io.Copy(os.Stdin, os.Stdin)
		unix.Exit(0)
	}
	os.Exit(m.Run())
}

var echo = []string{"/proc/self/exe", echoWord, "an argument"}

// What a child has: its arguments, no environment, a session of its own, the caller's
// signal mask, no handler, what was ignored, and no file but its own.
func TestChildIsAsAsked(t *testing.T) {
	testneed.Live(t)
	signal.Ignore(unix.SIGHUP)
	defer signal.Reset(unix.SIGHUP)
	c, err := Start(t.Context(), 10*time.Second, echo, os.Stderr, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	dir := fmt.Sprintf("/proc/%d/", c.Process.Pid)
	read := func(name string) string {
		b, err := os.ReadFile(dir + name)
		if err != nil {
			t.Error(err)
		}
		return string(b)
	}
	if got := read("cmdline"); got != strings.Join(echo, "\x00")+"\x00" {
		t.Errorf("cmdline %q", got)
	}
	if got := read("environ"); got != "" {
		t.Errorf("environ %q", got)
	}
	if sid, err := unix.Getsid(c.Process.Pid); err != nil || sid != c.Process.Pid {
		t.Errorf("session %d, %v", sid, err)
	}
	fds, _ := filepath.Glob(dir + "fd/*")
	for _, fd := range fds {
		to, _ := os.Readlink(fd)
		if n := filepath.Base(fd); len(n) == 1 && n <= "2" || strings.HasPrefix(to, "anon_inode:") || strings.HasPrefix(to, "/sys/fs/cgroup/") {
			continue // Go's own start has opened some
		}
		t.Errorf("file %s: %s", fd, to)
	}
	for line := range strings.Lines(read("status")) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":\t")
		switch {
		case name == "SigBlk" && value != "0000000000000000":
			t.Errorf("%s %s", name, value)
		case name == "SigIgn" && value != fmt.Sprintf("%016x", 1<<(unix.SIGHUP-1)):
			t.Errorf("%s %s", name, value)
		}
	}
	if _, err := c.Conn.Write([]byte("word")); err != nil {
		t.Error(err)
	}
	b := make([]byte, 4)
	if _, err := io.ReadFull(c.Conn, b); err != nil || string(b) != "word" {
		t.Errorf("%q, %v", b, err)
	}
	c.End()
	if st, err := c.Process.Wait(); err != nil || st.ExitCode() != 0 {
		t.Errorf("%v, %v", st, err)
	}
}

// Many starts beside a collector that never rests: the child has no stack and the
// parent's memory.
func TestManyStarts(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	done := make(chan struct{})
	defer close(done)
	go func() {
		for {
			select {
			case <-done:
				return
			default:
				runtime.GC()
				_ = make([]byte, 1<<20)
			}
		}
	}()
	for range 50 {
		c, err := Start(t.Context(), 10*time.Second, echo)
		if err != nil {
			t.Fatal(err)
		}
		c.End()
		c.Process.Wait()
	}
}

func TestWhatCannotBeExecuted(t *testing.T) {
	dir := t.TempDir()
	for path, want := range map[string]error{filepath.Join(dir, "none"): unix.ENOENT, dir: unix.EACCES} {
		if c, err := Start(t.Context(), 10*time.Second, []string{path}); !errors.Is(err, want) {
			t.Errorf("%s: %v, %v", path, c, err)
		}
	}
	c, err := Start(t.Context(), 10*time.Second, []string{"/bin/true"}) // no word of it
	if err == nil || errors.Is(err, ErrHeld) || held() != nil {
		t.Errorf("%v, %v", c, err)
	}
}

// Invariants 1 and 4: execve is held back. The start ends in time, or with its
// context, though all the while the world is stopped for the collector and there is
// one P; the next is refused at once; the child is gone when it is let go.
func TestInvariant1HeldStart(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	if os.Getenv("STACKSHOT_TEST_HELD") == "" {
		cmd := exec.Command("/proc/self/exe", "-test.run=^TestInvariant1HeldStart$", "-test.v")
		cmd.Env = append(os.Environ(), "STACKSHOT_TEST_HELD=1", "GOMAXPROCS=1")
		hold := testdelay.HoldExec(t, cmd)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		if hold.Held() != 2 {
			t.Errorf("%d calls of execve were held, want 2", hold.Held())
		}
		if left := hold.Left(); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
		return
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	mine := errors.New("my reason")
	time.AfterFunc(200*time.Millisecond, func() { cancel(mine) })
	began := time.Now()
	if _, err := Start(ctx, 20*time.Second, echo); !errors.Is(err, mine) || time.Since(began) > 5*time.Second {
		t.Errorf("cancelled: %v after %v", err, time.Since(began))
	}
	go func() {
		for range 100 {
			runtime.GC()
			time.Sleep(time.Millisecond)
		}
	}()
	began = time.Now()
	if _, err := Start(t.Context(), 300*time.Millisecond, echo); !errors.Is(err, ErrHeld) || !strings.Contains(err.Error(), "300ms") || time.Since(began) > 5*time.Second {
		t.Errorf("held: %v after %v", err, time.Since(began))
	}
	began = time.Now()
	if _, err := Start(t.Context(), 20*time.Second, echo); !errors.Is(err, ErrHeld) || time.Since(began) > 100*time.Millisecond {
		t.Errorf("the next: %v after %v", err, time.Since(began))
	}
	err := testtask.WaitFor(5*time.Second, func() (bool, error) {
		list, _ := filepath.Glob("/proc/self/task/*/children")
		for _, f := range list {
			if b, _ := os.ReadFile(f); len(b) > 0 {
				return false, nil
			}
		}
		return true, nil
	})
	if err != nil {
		t.Error("children are left:", err)
	}
}
