package snapshot

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"stackshot/internal/clock"
	"stackshot/internal/engine"
	"stackshot/internal/testneed"

	"golang.org/x/sys/unix"
)

// The machine runs on at once when the process is killed inside the window.
func TestKilledInTheWindow(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	testneed.Slow(t)
	requireBPF(t)
	if os.Getenv("STACKSHOT_TEST_KILLED") != "" {
		holdWindow(t)
		return
	}
	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestKilledInTheWindow$")
		cmd.Env = append(os.Environ(), "STACKSHOT_TEST_KILLED="+strconv.Itoa(int(sig)))
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		err := cmd.Wait()
		took := time.Since(began)
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != sig {
			t.Errorf("%v: %v\n%s", sig, err, out.String())
		}
		if took > 8*time.Second {
			t.Errorf("%v: the machine was held %v", sig, took)
		}
	}
	if s := openTest(t, Options{}, engine.Hooks{}); s != nil {
		if r, _ := s.mustTake(t); !r.Whole() && !hasWarning(r, "cpu_missed") {
			t.Errorf("after the kills: %+v", r)
		}
	}
}

// holdWindow is the child: its main worker sends the signal to its own process
// from inside the window, where every CPU is held for up to 10 s.
func holdWindow(t *testing.T) {
	sig, _ := strconv.Atoi(os.Getenv("STACKSHOT_TEST_KILLED"))
	pid := os.Getpid()
	first := true
	s := openTest(t, Options{MaxPause: 10 * time.Second}, engine.Hooks{InWindow: func(int) {
		if first {
			first = false
			unix.RawSyscall(unix.SYS_KILL, uintptr(pid), uintptr(sig), 0)
		}
		for until := clock.Nanotime() + int64(10*time.Second); clock.Nanotime() < until; {
		}
	}})
	s.mustTake(t)
	t.Fatal("the signal did not end the process")
}

// A Go panic inside the window ends the process, and with it the stop.
func TestPanicInTheWindow(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	requireBPF(t)
	if os.Getenv("STACKSHOT_TEST_PANIC") != "" {
		s := openTest(t, Options{MaxPause: 10 * time.Second}, engine.Hooks{InWindow: func(int) { panic("in the window") }})
		s.mustTake(t)
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestPanicInTheWindow$")
	cmd.Env = append(os.Environ(), "STACKSHOT_TEST_PANIC=1")
	began := time.Now()
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "in the window") {
		t.Errorf("err %v\n%s", err, out)
	}
	if took := time.Since(began); took > 8*time.Second {
		t.Errorf("the machine was held %v", took)
	}
}

// A context that is cancelled ends the capture with its error.
func TestCancelled(t *testing.T) {
	testneed.Live(t)
	ctx, cancel := context.WithCancel(context.Background())
	s := openTest(t, Options{}, engine.Hooks{})
	cancel()
	if _, err := s.Take(ctx, Request{}); !errors.Is(err, context.Canceled) {
		t.Errorf("Take with a cancelled context: %v", err)
	}
}
