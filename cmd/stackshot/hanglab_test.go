package main

import (
	"os/exec"
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
func judge(t *testing.T, in invocation, more ...string) (*hanglab.Verdict, outcome) {
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

// TestHangLab: of some cases of the laboratory, alone, the command says what is to be said
// and no more; TestHangLabAlone of snapshot has more of them.
func TestHangLab(t *testing.T) {
	testneed.Lab(t, testneed.Machine)
	testneed.Slow(t)
	if testneed.Guest() {
		t.Skip("TestHangLabAlone of snapshot does it in a guest, where the command takes ten seconds")
	}
	lab := hanglab.New(t)
	for i, c := range hanglab.Cases() {
		if i%testneed.Length(30, 15) != 0 {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			in := invocation{}
			if c.Alone {
				in.bend = onFirstCPU
			}
			for _, err := range lab.Try(t, c, labMinWait, func(*hanglab.Running) (*hanglab.Verdict, []error) {
				v, o := judge(t, in)
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
	for _, r := range all {
		r.Age(labMinWait + 50*time.Millisecond)
	}
	taken := map[string]bool{}
	for _, engine := range []string{"auto", "pull"} {
		t.Run(engine, func(t *testing.T) {
			if taken[engine] {
				t.Logf("auto was %s: this kernel has no trap", engine)
				return
			}
			v, o := judge(t, invocation{}, "--engine", engine)
			taken[v.Capture.Engine] = true
			wantCode(t, v, o)
			for _, r := range all {
				for _, err := range hanglab.Check(v, r) {
					t.Error(err)
				}
			}
		})
	}
	if !taken["pull"] {
		t.Errorf("engines %v", taken)
	}
	t.Logf("%d cases in one capture; not made here: %q", len(all)-1, lacking)
}
