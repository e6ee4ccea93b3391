package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/term"
)

// seat is somebody at a terminal of 80x24, from which the command runs as from a shell.
type seat struct {
	t             *testing.T
	master, slave *os.File
	before        *term.State
	cmd           *exec.Cmd
	stderr        bytes.Buffer
	end           chan error

	mu    sync.Mutex
	shown bytes.Buffer // by mu
	gone  chan struct{}
}

// sit starts the command. env is beside TERM, which is xterm unless env says otherwise.
func sit(t *testing.T, env []string, args ...string) *seat {
	t.Helper()
	s := &seat{t: t, end: make(chan error, 1), gone: make(chan struct{})}
	s.master, s.slave = openTerminal(t)
	s.before, _ = term.GetState(int(s.slave.Fd()))
	s.cmd = exec.Command(program, args...)
	s.cmd.Dir = t.TempDir()
	for _, e := range os.Environ() { // the environment without what bears on pagers
		if name, _, _ := strings.Cut(e, "="); !strings.HasSuffix(name, "PAGER") && name != "LESS" && name != "TERM" && name != "SUDO_UID" {
			s.cmd.Env = append(s.cmd.Env, e)
		}
	}
	s.cmd.Env = append(append(s.cmd.Env, "TERM=xterm", "NO_COLOR=1"), env...)
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = s.slave, s.slave, &s.stderr
	s.cmd.WaitDelay = 10 * time.Second
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.cmd.Process.Kill() })
	go func() { s.end <- s.cmd.Wait() }()
	go func() {
		defer close(s.gone)
		b := make([]byte, 4096)
		for {
			n, err := s.master.Read(b)
			s.mu.Lock()
			s.shown.Write(b[:n])
			s.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return s
}

func (s *seat) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.ReplaceAll(s.shown.String(), "\r\n", "\n")
}

// sees waits for words on the terminal.
func (s *seat) sees(words string) {
	s.t.Helper()
	for deadline := time.Now().Add(defaultLimit); !strings.Contains(s.text(), words); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatalf("the terminal never shows %q: %q", words, s.text())
		}
	}
}

// answers types keys until there is an answer: a shell that is about to read does not see a signal
// before the read is over.
func (s *seat) answers(keys, words string) {
	s.t.Helper()
	for deadline := time.Now().Add(defaultLimit); !strings.Contains(s.text(), words); {
		if time.Now().After(deadline) {
			s.t.Fatalf("the terminal never answers %q with %q: %q", keys, words, s.text())
		}
		s.types(keys)
		for range 100 {
			if time.Sleep(5 * time.Millisecond); strings.Contains(s.text(), words) {
				return
			}
		}
	}
}

func (s *seat) types(keys string) {
	s.t.Helper()
	if _, err := s.master.WriteString(keys); err != nil {
		s.t.Fatal(err)
	}
}

// leaves waits for the end of the command, and gives all that the terminal showed.
func (s *seat) leaves() outcome {
	s.t.Helper()
	select {
	case err := <-s.end:
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			s.t.Fatal(err)
		}
	case <-time.After(defaultLimit):
		s.t.Fatalf("the command does not end; the terminal: %q", s.text())
	}
	s.slave.Close()
	<-s.gone
	return outcome{code: s.cmd.ProcessState.ExitCode(), stdout: s.text(), stderr: s.stderr.String()}
}
