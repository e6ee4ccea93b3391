package main

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"stackshot/internal/limits"
	"stackshot/internal/testneed"
)

// Limits as a shell's ulimit sets them, each too low for a capture.
var lowLimits = map[string]string{
	"RLIMIT_FSIZE":  "--fsize=1000",
	"RLIMIT_AS":     "--as=1700000000",
	"RLIMIT_DATA":   "--data=250000000",
	"RLIMIT_NOFILE": "--nofile=24",
	"RLIMIT_RTTIME": "--rttime=1000",
}

// bounded has prlimit(1) run the command with limits, soft and hard.
func bounded(t *testing.T, limits []string, bend func(*exec.Cmd)) invocation {
	t.Helper()
	testneed.Program(t, "prlimit")
	prlimit, err := exec.LookPath("prlimit")
	if err != nil {
		t.Fatal(err)
	}
	return invocation{bend: func(c *exec.Cmd) {
		if bend != nil {
			bend(c)
		}
		c.Path, c.Args = prlimit, slices.Concat([]string{"prlimit"}, limits, c.Args)
	}}
}

// Whoever may lift the limits has a capture that lacks nothing: the soft ones everybody,
// the hard ones CAP_SYS_RESOURCE.
func TestLimitsAreLifted(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	t.Parallel()
	needRoot(t)
	have, err := limits.Capabilities()
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, flag := range lowLimits {
		if have&(1<<unix.CAP_SYS_RESOURCE) == 0 {
			flag += ":" // the soft one alone
		}
		all = append(all, flag)
	}
	file := openDir(t) + "/file"
	o := bounded(t, all, nil).run(t, "take", "--json", "-o", file)
	taken(t, o)
	mode0600(t, file)
	for _, word := range []string{`"engine":"procfs"`, "RLIMIT"} {
		if strings.Contains(o.stdout, word) {
			t.Errorf("%s in %s", word, o.stdout)
		}
	}
}

// Whoever may not has one line that names the limit, or a capture without what the limit
// forbids; doctor says the same. The Go runtime does not crash, nothing kills it.
func TestLimitsAreSaid(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	t.Parallel()
	needRoot(t)
	for name, flag := range lowLimits {
		file := openDir(t) + "/file"
		in := bounded(t, []string{flag}, asNobodyWith(capsToStop))
		o, d := in.run(t, "take", "--json", "-o", file), in.run(t, "doctor")
		if name == "RLIMIT_RTTIME" {
			if taken(t, o); !strings.Contains(o.stdout+o.stderr, name+" is 1000 us") || !strings.Contains(d.stdout, name+" is 1000 us") {
				t.Errorf("not said: %s%s\ndoctor: %s", o.stdout, o.stderr, d.stdout)
			}
			continue
		}
		for _, o := range []outcome{o, d} {
			if o.want(t, exitFailed, "too little is left", name+" is "); strings.Count(o.stderr, "\n") != 1 {
				t.Errorf("%s: %.500s", name, o.stderr)
			}
		}
	}
}
