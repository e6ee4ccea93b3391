package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"stackshot/internal/testfuse"
	"stackshot/internal/testneed"

	"golang.org/x/sys/unix"
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
			in.run(t, "take", "--engine", "procfs", "-o", dir+"/x", "--write-timeout", "2500ms")
		})
		if !strings.Contains(o.stderr, "stackshot: writing x, 1 s") || !strings.Contains(o.stderr, "writing x, 2 s") {
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
		taken(t, invocation{bend: func(c *exec.Cmd) { c.Stdout, c.Env = slave, append(os.Environ(), "TERM=xterm", "NO_COLOR=1") }}.run(t))
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
