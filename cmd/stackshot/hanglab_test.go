package main

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"stackshot/internal/hanglab"
	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
)

// labMinWait is --min-wait in the tests of the laboratory: a case is captured when it is
// a little older.
const labMinWait = 200 * time.Millisecond

// codeHangs is the exit code that says that something hangs.
const codeHangs = 4

// judge has the command say what hangs, in JSON. An emulated machine needs longer for
// 600 tasks than the default pause.
func judge(t *testing.T, more ...string) (*hanglab.Verdict, outcome) {
	t.Helper()
	return judgeBy(t, invocation{}, more...)
}

func judgeBy(t *testing.T, in invocation, more ...string) (*hanglab.Verdict, outcome) {
	t.Helper()
	args := []string{"hang", "--format", "json", "-o", t.TempDir() + "/file", "--min-wait", labMinWait.String()}
	if testneed.Guest() {
		args = append(args, "--arrival-budget", "1s", "--max-pause", "2s")
	}
	o := in.run(t, append(args, more...)...)
	v, err := hanglab.Parse([]byte(o.stdout))
	if err != nil {
		t.Fatalf("exit code %d, %v; stdout %.300q, stderr %s", o.code, err, o.stdout, o.stderr)
	}
	return v, o
}

// wantCode holds the exit code against the verdict.
func wantCode(t *testing.T, v *hanglab.Verdict, o outcome) {
	t.Helper()
	hangs := len(v.Deadlocks)+len(v.Culprits) > 0
	if hangs && o.code != codeHangs || o.code != codeHangs && o.code != exitWhole && o.code != exitIncomplete {
		t.Errorf("exit code %d, something hangs: %v", o.code, hangs)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("deadlocks %+v\nculprits %+v\n%s", v.Deadlocks, v.Culprits, o.stderr)
		}
	})
}

// TestHangLabTogether: the same for all of them in one capture of each engine that stops
// the machine, among 500 processes with 20,000 open files, asleep or waiting as they should,
// of whom none is accused.
func TestHangLabTogether(t *testing.T) {
	testneed.Lab(t, testneed.Machine)
	testneed.Slow(t)
	lab := hanglab.New(t)
	all := []*hanglab.Running{lab.Crowd(t, testtask.DefaultBystanders)}
	var lacking []string
	for _, c := range hanglab.Cases() {
		switch why := c.Lacks(); {
		case why != "":
			lacking = append(lacking, c.Name+": "+why)
		case !c.Alone:
			all = append(all, lab.Start(t, c))
		}
	}
	taken := map[string]bool{}
	for _, engine := range []string{"auto", "pull"} {
		t.Run(engine, func(t *testing.T) {
			if taken[engine] {
				t.Logf("auto was %s: this kernel has no trap", engine)
				return
			}
			taken[judgeAll(t, all, "--engine", engine)] = true
		})
	}
	if !taken["pull"] {
		t.Errorf("engines %v", taken)
	}
	t.Logf("%d cases in one capture; not made here: %q", len(all)-1, lacking)
}

// TestHangLabAlone: the same for cases that can be beside no other, as one that keeps a CPU.
func TestHangLabAlone(t *testing.T) {
	testneed.Lab(t, testneed.Machine)
	testneed.Slow(t)
	lab := hanglab.New(t)
	for _, c := range hanglab.Cases() {
		if !c.Alone {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			for _, err := range lab.Try(t, c, labMinWait, func(*hanglab.Running) (*hanglab.Verdict, []error) {
				v, o := judgeBy(t, invocation{bend: onFirstCPU})
				wantCode(t, v, o)
				return v, nil
			}) {
				t.Error(err)
			}
		})
	}
}

// onFirstCPU has a command begin where no hog of the laboratory is. Its threads on a hog's CPU
// would go on only when the fair server lets them, 50 ms in each second; the hog's victims run
// then too, and at the capture, a moment later, have waited for less than labMinWait.
func onFirstCPU(c *exec.Cmd) {
	c.Args = append([]string{"taskset", "-c", "0", c.Path}, c.Args[1:]...)
	c.Path = "/usr/bin/taskset" // of util-linux, which every Debian has
}

// TestHangWithoutNames: the words in memory alone tell the locks of the C libraries, whose
// deadlocks stay sure, from those of Rust and Go.
func TestHangWithoutNames(t *testing.T) {
	testneed.Lab(t, testneed.Machine)
	testneed.Slow(t)
	lab := hanglab.New(t)
	var all []*hanglab.Running
	for _, c := range hanglab.Cases() {
		if c.Lacks() == "" && !c.Alone && (strings.HasPrefix(c.Name, "abba") || strings.HasPrefix(c.Name, "rwlock") || c.Name == "condvar") {
			all = append(all, lab.Start(t, c.WithoutNames()))
		}
	}
	if len(all) < 8 {
		t.Fatalf("%d cases", len(all))
	}
	judgeAll(t, all, "--user-stacks", "off")
}

// judgeAll has the command judge all cases at once.
func judgeAll(t *testing.T, all []*hanglab.Running, more ...string) (engine string) {
	t.Helper()
	for _, r := range all {
		r.Age(labMinWait + 50*time.Millisecond)
	}
	v, o := judge(t, more...)
	wantCode(t, v, o)
	for _, r := range all {
		for _, err := range hanglab.Check(v, r) {
			t.Error(err)
		}
	}
	return v.Capture.Engine
}
