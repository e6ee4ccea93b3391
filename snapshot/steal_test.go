package snapshot

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"
)

// stealTicks is how long the host ran others in place of our CPUs, all told.
func stealTicks(tb testing.TB) (sum uint64) {
	tb.Helper()
	for line := range strings.Lines(slurp(tb, "/proc/stat")) {
		f := strings.Fields(line)
		if len(f) > 8 && strings.HasPrefix(f[0], "cpu") && f[0] != "cpu" {
			n, err := strconv.ParseUint(f[8], 10, 64)
			if err != nil {
				tb.Fatal(fmt.Errorf("steal time: %w", err))
			}
			sum += n
		}
	}
	return sum
}

// despiteTheHost repeats what fails while the host runs others in place of our
// CPUs. Where it does so all the time, nothing about microseconds can be shown, and
// the test says so.
func despiteTheHost(t *testing.T, try func() error) {
	t.Helper()
	const tries = 10
	var err error
	for range tries {
		before := stealTicks(t)
		if err = try(); err == nil {
			return
		}
		time.Sleep(200 * time.Millisecond) // a tick of /proc/stat is 10 ms, and late
		if stealTicks(t) == before {
			t.Error(err)
			return
		}
		t.Logf("once more, the host took CPU time: %v", err)
	}
	t.Skipf("the host took CPU time in each of %d tries, last: %v", tries, err)
}

// notLeftAlone judges a proof of which the host has left too few captures alone:
// what there is of it must be enough, or the host must be the reason.
func notLeftAlone(t *testing.T, captures, alone int, disturbed map[string]int) {
	t.Helper()
	said := fmt.Sprintf("of %d captures only %d were left alone: %v", captures, alone, disturbed)
	switch byHost := disturbed["time was stolen"] + disturbed["the host paused"]; {
	case byHost < captures/2:
		t.Fatal(said)
	case alone < 5:
		t.Skip(said)
	}
	t.Log(said)
}
