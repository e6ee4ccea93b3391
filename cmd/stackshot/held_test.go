package main

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/testdelay"
	"stackshot/internal/testneed"
)

// held runs the command with every helper process of it held between clone and exec,
// on one P, and gives what it came to and how many were held.
func held(t *testing.T, args ...string) (outcome, int) {
	t.Helper()
	needRoot(t)
	var hold *testdelay.Hold
	o := invocation{bend: func(c *exec.Cmd) {
		c.Env = append(c.Environ(), "GOMAXPROCS=1")
		hold = testdelay.HoldExec(t, c)
	}}.run(t, args...)
	n := hold.Held()
	if left := hold.Left(); len(left) > 0 {
		t.Errorf("left after the hold: %v", left)
	}
	return o, n
}

// No helper process begins: the capture ends within its limits, with its names and its
// file, which it writes itself and says so.
func TestHeldStart(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	testneed.Slow(t)
	dir := t.TempDir()
	o, n := held(t, "take", "-o", dir+"/file")
	o.want(t, exitWhole, "without a helper process", "did not begin")
	if n == 0 {
		t.Error("nothing was held: the test proves nothing")
	}
	if o.took > 25*time.Second { // the machine's lock is waited for
		t.Errorf("took %v", o.took)
	}
	mode0600(t, dir+"/file")
	onlyFile(t, dir, "file")
}

// Where the target may hang too, no thread of ours goes there: the snapshot is in
// memory, and a message says so.
func TestHeldStartAndStalledTarget(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	testneed.Slow(t)
	stall(t, stallAll, func(t *testing.T, dir string) {
		o, _ := held(t, "take", "-o", dir+"/file")
		o.want(t, exitIncomplete, "did not begin", "fuse.stalled")
		mode0600(t, o.spared(t))
	})
}

// A signal while a start is held is answered at once.
func TestInterruptHeldStart(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	needRoot(t)
	for _, sig := range []unix.Signal{unix.SIGINT, unix.SIGTERM} {
		var hold *testdelay.Hold
		began := time.Now()
		o := interruptBent(t, func(c *exec.Cmd) { hold = testdelay.HoldExec(t, c) }, func(string) bool { return hold.Held() > 0 },
			sig, "take", "-o", t.TempDir()+"/file")
		if o.want(t, exitFailed, "interrupted"); !strings.Contains(o.stderr, sig.String()) {
			t.Errorf("%v: %s", sig, o.stderr)
		}
		t.Logf("%v: %v in all", sig, time.Since(began))
		if left := hold.Left(); len(left) > 0 {
			t.Errorf("left after the hold: %v", left)
		}
	}
}
