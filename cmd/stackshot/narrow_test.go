package main

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"stackshot/internal/testneed"
)

// narrowed are the flags of a command line, made ready.
func narrowed(t *testing.T, args ...string) *narrowing {
	t.Helper()
	n, cmd := &narrowing{}, &cobra.Command{}
	n.flags(cmd)
	if err := errors.Join(cmd.ParseFlags(args), n.check(cmd)); err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	return n
}

func foldedThreads(text string) (sum int) {
	for line := range strings.Lines(text) {
		n, _ := strconv.Atoi(strings.TrimSpace(line[strings.LastIndex(line, " "):]))
		sum += n
	}
	return sum
}

// Flags of one kind are either, of different kinds both; --pid takes threads too.
func TestShortForms(t *testing.T) {
	testneed.Live(t)
	t.Parallel()
	for want, args := range map[string][]string{
		`state=D or state=R`:                                  {"--state", "D", "--state", "R"},
		`pid=7 or tid=7 or pid=8 or tid=8`:                    {"--pid", "7,8"},
		`(pid=1 or uid=0) and name=k* and cgroup~docker`:      {"--cgroup", "docker", "--name", "k*", "--where", "pid=1 or uid=0"},
		`func="f(int, char)" and module=ext4 and wait=/mnt/a`: {"--func", "f(int, char)", "--module", "ext4", "--waits-for", "/mnt/a"},
	} {
		if got := narrowed(t, args...).expr.String(); got != want {
			t.Errorf("%q: %s, want %s", args, got, want)
		}
	}
	if n := narrowed(t); n.expr != nil {
		t.Errorf("no flags: %v", n.expr)
	}
}

// Nothing is left: exit code 3 and one line. Programs still get a whole document; a form that
// has no place for it has the number of what is not shown on standard error.
func TestNothingMatches(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	t.Parallel()
	hung := hungFile(t, false, true)
	for _, args := range [][]string{{"report"}, {"hang"}, {"latency"}} {
		o := stackshot(t, append(args, hung, "--where", "name=nobody", "--pid", "4")...)
		if want := "hung: none of 2 threads matches name=nobody and (pid=4 or tid=4)"; o.code != exitIncomplete || o.stdout != "" || strings.Count(o.stderr, "\n") != 1 || !strings.Contains(o.stderr, want) {
			t.Errorf("%q: %d, %q, %q", args, o.code, o.stdout, o.stderr)
		}
		o = stackshot(t, append(args, hung, "--format", "json", "--pid", "4")...)
		if o.code != exitIncomplete || !json.Valid([]byte(o.stdout)) || !strings.Contains(o.stdout, `"threads_not_asked": 2`) || !strings.Contains(o.stderr, "none of 2 threads") {
			t.Errorf("%q: %d, %q, %q", args, o.code, o.stdout, o.stderr)
		}
	}
	if o := stackshot(t, "report", hung, "--pid", "71", "--format", "folded"); o.code != exitWhole || o.stderr != "stackshot: 1 of 2 threads not shown\n" || foldedThreads(o.stdout) != 1 {
		t.Errorf("%d, %q, %q", o.code, o.stdout, o.stderr)
	}
	if o := stackshot(t, "hang", hung, "--pid", "71"); o.code != exitHang || !strings.HasSuffix(o.stdout, "1 of 2 threads not asked for: what concerns only them is not shown\n") {
		t.Errorf("%d, %q, %q", o.code, o.stdout, o.stderr)
	}
}
