package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"stackshot/internal/testfuse"
	"stackshot/internal/testneed"
)

// openTerminal gives both ends of a pseudo-terminal.
func openTerminal(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { master.Close() })
	fd := int(master.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80}); err != nil {
		t.Fatal(err)
	}
	slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { slave.Close() })
	return master, slave
}

// onTerminal gives what run writes to a terminal.
func onTerminal(t *testing.T, run func(slave *os.File)) string {
	t.Helper()
	master, slave := openTerminal(t)
	text := make(chan string)
	go func() {
		var b bytes.Buffer
		b.ReadFrom(master)
		text <- b.String()
	}()
	run(slave)
	slave.Close()
	return strings.ReplaceAll(<-text, "\r\n", "\n")
}

// On a terminal, what takes longer than a second says what it is; without one
// it does not.
func TestProgress(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	testneed.Slow(t)
	t.Parallel()
	stall(t, testfuse.Write, func(t *testing.T, dir string) {
		var o outcome
		o.stderr = onTerminal(t, func(slave *os.File) {
			in := invocation{bend: func(c *exec.Cmd) { c.Stderr = slave }}
			in.run(t, "take", "--engine", "procfs", "-o", dir+"/x", "--write-timeout", "4500ms")
		})
		// The report is shown after 2 s; then the line is there again, and counts on.
		if !strings.Contains(o.stderr, "stackshot: writing x, 1 s") || !strings.Contains(o.stderr, "writing x, 3 s") && !strings.Contains(o.stderr, "writing x, 4 s") {
			t.Errorf("terminal: %q", o.stderr)
		}
		mode0600(t, o.spared(t))
	})
}

// The report fits the terminal it goes to.
func TestTerminalReport(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	t.Parallel()
	shown := onTerminal(t, func(slave *os.File) {
		taken(t, invocation{bend: func(c *exec.Cmd) {
			c.Args[0] = "stackshot" // as out of PATH: commands have the path of what was started by one, and may be longer than a line
			c.Stdout, c.Env = slave, append(os.Environ(), "TERM=xterm", "NO_COLOR=1")
		}}.run(t))
	})
	if lines := strings.Count(shown, "\n"); lines == 0 || lines > plainRows-2 {
		t.Errorf("%d lines", lines)
	}
	for line := range strings.Lines(shown) {
		if len([]rune(line)) > 81 {
			t.Errorf("%d wide: %s", len(line), line)
		}
	}
}

var escape = regexp.MustCompile(`\x1b\[[0-9;]*m`)

// When text is coloured: on a terminal, unless the environment or the flag says otherwise; and
// without its colours it is the same text.
func TestColor(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	t.Parallel()
	file := sample(t)
	plain := stackshot(t, "report", "--no-symbols", file).stdout
	for _, c := range []struct {
		flag, env string
		terminal  bool
		want      bool
	}{
		{"auto", "TERM=xterm", true, true},
		{"auto", "TERM=xterm", false, false},
		{"auto", "TERM=dumb", true, false},
		{"auto", "NO_COLOR=1", true, false},
		{"auto", "NO_COLOR=", true, true},
		{"always", "NO_COLOR=1", false, true},
		{"always", "TERM=dumb", true, true},
		{"never", "TERM=xterm", true, false},
	} {
		for _, verb := range []string{"report", "hang"} {
			shown := colored(t, c.env, c.terminal, "--color", c.flag, verb, "--no-pager", "--no-symbols", file)
			if got := escape.MatchString(shown); got != c.want {
				t.Errorf("%s of %+v: coloured: %v", verb, c, got)
			}
			if without := escape.ReplaceAllString(shown, ""); verb == "report" && !c.terminal && without != plain {
				t.Errorf("%+v: another text", c)
			}
		}
	}
}

// colored is what the command writes to a terminal or to a pipe.
func colored(t *testing.T, env string, terminal bool, args ...string) string {
	t.Helper()
	environ := append(os.Environ(), "TERM=xterm", "NO_COLOR=", env)
	if !terminal {
		return invocation{bend: func(c *exec.Cmd) { c.Env = environ }}.run(t, args...).stdout
	}
	return onTerminal(t, func(slave *os.File) {
		invocation{bend: func(c *exec.Cmd) { c.Stdout, c.Env = slave, environ }}.run(t, args...)
	})
}

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
