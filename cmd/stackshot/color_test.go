package main

import (
	"os"
	"os/exec"
	"regexp"
	"testing"

	"stackshot/internal/testneed"
)

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
