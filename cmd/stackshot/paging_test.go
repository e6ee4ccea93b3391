package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"stackshot/internal/testneed"
)

// sample is the path of a snapshot, which some tests need nothing else of.
func sample(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs("../../internal/testread/testdata/today.kcdata.zst")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// cutSample makes a file in dir that breaks off.
func cutSample(t *testing.T, dir string) string {
	t.Helper()
	c, err := readFile(sample(t))
	if err != nil {
		t.Fatal(err)
	}
	cut := filepath.Join(dir, "cut")
	write(t, cut, c.Plain[:len(c.Plain)*3/4])
	return cut
}

// marks is a pager that marks every line which went through it.
const marks = "PAGER=sed s/^/paged:/"

// What goes through a pager is what the terminal would have shown without.
func TestPagerShowsEveryByte(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	t.Parallel()
	for _, args := range [][]string{{"report"}, {"report", "--format", "json"}, {"hang"}, {"latency"}, {"dump"}} {
		args = append(args, sample(t))
		plain := sit(t, []string{marks}, append(args, "--no-pager")...).leaves()
		paged := sit(t, []string{marks}, args...).leaves()
		if paged.stderr = ""; paged.code != plain.code || strings.ReplaceAll("\n"+paged.stdout, "\npaged:", "\n") != "\n"+plain.stdout || paged.stdout == plain.stdout {
			t.Errorf("%q: exit code %d and %d, paged:\n%.300s\nplain:\n%.300s", args, paged.code, plain.code, paged.stdout, plain.stdout)
		}
	}
}

// Where nobody wants a pager, or none could work, there is none.
func TestNoPager(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	t.Parallel()
	want := sit(t, nil, "report", "--no-pager", sample(t)).leaves().stdout
	for _, env := range [][]string{
		{"PAGER="}, {"PAGER=cat"}, {marks, "STACKSHOT_PAGER="}, {marks, "STACKSHOT_PAGER=cat"},
		{marks, "TERM=dumb"}, {marks, "TERM="}, {"PATH=/nowhere"},
	} {
		o := sit(t, env, "report", sample(t)).leaves()
		if o.code != 0 || o.stdout != want || o.stderr != "" {
			t.Errorf("%q: exit code %d, %s, %.200q", env, o.code, o.stderr, o.stdout)
		}
	}
	in := invocation{bend: func(c *exec.Cmd) { c.Env = append(os.Environ(), marks, "TERM=xterm") }}
	if o := in.run(t, "report", sample(t)); o.code != 0 || strings.Contains(o.stdout, "paged:") {
		t.Errorf("no terminal: %.200q", o.stdout)
	}
	o := sit(t, []string{marks}, "hang", "--engine", "procfs", "-o", filepath.Join(t.TempDir(), "x")).leaves()
	if !strings.Contains(o.stdout, "stackshot of ") || strings.Contains(o.stdout, "paged:") {
		t.Errorf("a capture pages: %.200q", o.stdout)
	}
}

// Whoever leaves early is no error, and the exit code stays that of the file (P1).
func TestPagerIsLeftEarly(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	t.Parallel()
	cut := cutSample(t, t.TempDir())
	for _, c := range []struct {
		name string
		code int
	}{{sample(t), exitWhole}, {cut, exitIncomplete}} {
		for _, verb := range []string{"report", "dump"} {
			o := sit(t, []string{"PAGER=head -n 1"}, verb, c.name).leaves()
			if o.code != c.code || strings.Count(o.stdout, "\n") != 1 || strings.Contains(o.stderr, "broken pipe") || (c.code == 0) != (o.stderr == "") {
				t.Errorf("%s %s: exit code %d, want %d; %s, %.200q", verb, c.name, o.code, c.code, o.stderr, o.stdout)
			}
		}
	}
}

// A pager that does not start costs one line on standard error, and no byte (P3).
func TestPagerDoesNotStart(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	t.Parallel()
	for _, verb := range []string{"report", "dump"} { // dump is more than a pipe holds
		want := sit(t, nil, verb, "--no-pager", sample(t)).leaves().stdout
		for _, pager := range []string{"no-such-pager -x", "/", "exec no-such-pager 2>&-", "exec / 2>/dev/null"} {
			o := sit(t, []string{"PAGER=" + pager}, verb, sample(t)).leaves()
			if o.code != 0 || o.stdout != want || strings.Count(o.stderr, "\n") != 1 || !strings.Contains(o.stderr, pager) {
				t.Errorf("%s with %q: exit code %d, %d bytes of %d, %s", verb, pager, o.code, len(o.stdout), len(want), o.stderr)
			}
		}
	}
}

// Ctrl-C is the pager's, and the command ends after it (P2).
func TestPagerHasCtrlC(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	t.Parallel()
	s := sit(t, []string{"PAGER=trap 'echo interrupted' INT; trap 'echo asked' QUIT; cat >/dev/null; echo ready; until read x </dev/tty; do :; done; echo left"}, "report", sample(t))
	s.sees("ready")
	s.answers("\x03", "interrupted")
	s.answers("\x1c", "asked")
	s.types("\n")
	if o := s.leaves(); o.code != 0 || !strings.HasSuffix(o.stdout, "left\n") {
		t.Errorf("exit code %d: %s, %q", o.code, o.stderr, o.stdout)
	}
}

// A signal to the command ends the pager first, then the command (P2).
func TestPagerEndsWithTheCommand(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	t.Parallel()
	s := sit(t, []string{"PAGER=trap 'echo asked; exit' TERM; cat >/dev/null; echo ready; while :; do read x </dev/tty; done"}, "report", sample(t))
	s.sees("ready")
	s.cmd.Process.Signal(unix.SIGTERM)
	o := s.leaves()
	if status := s.cmd.ProcessState.Sys().(syscall.WaitStatus); !status.Signaled() || status.Signal() != unix.SIGTERM || !strings.Contains(o.stdout, "asked") {
		t.Errorf("%v: %q", s.cmd.ProcessState, o.stdout)
	}
}

// A pager that was killed leaves the terminal as it was (P4).
func TestPagerIsKilled(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	t.Parallel()
	s := sit(t, []string{"PAGER=stty raw -echo; echo raw; kill -9 $$"}, "report", sample(t))
	s.sees("raw")
	select {
	case err := <-s.end:
		s.end <- err
	case <-time.After(defaultLimit):
		t.Fatal("the command does not end")
	}
	after, err := term.GetState(int(s.slave.Fd()))
	if err != nil || *after != *s.before {
		t.Errorf("%v: %v, before %v", err, after, s.before)
	}
	s.leaves()
}

// The pager that everybody has: keys work, a short text stays on the screen, colours arrive.
func TestLess(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	testneed.Program(t, "less")
	t.Parallel()
	s := sit(t, []string{"NO_COLOR="}, "dump", sample(t))
	s.sees("\n:") // less asks for a key
	s.types("\x03")
	for deadline := time.Now().Add(defaultLimit); len(s.end) == 0 && time.Now().Before(deadline); { // after Ctrl-C less throws away what was typed before it looked
		s.types("q")
		time.Sleep(20 * time.Millisecond)
	}
	if o := s.leaves(); o.code != 0 || o.stderr != "" || !strings.Contains(o.stdout, "@00000000") {
		t.Errorf("exit code %d: %s, %.300q", o.code, o.stderr, o.stdout)
	}
	if o := sit(t, nil, "list").leaves(); o.code != 0 || !strings.Contains(o.stdout, "no snapshot in ") {
		t.Errorf("a short text: exit code %d: %s, %q", o.code, o.stderr, o.stdout)
	}
}
