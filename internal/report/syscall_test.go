package report

import (
	"strings"
	"testing"

	"stackshot/kcdata"
)

// A call is named by the table of who makes it; where that is not known, by none.
func TestSystemCallsOf32BitThreads(t *testing.T) {
	w := newWorld(1)
	task := w.task(70, "mixed")
	for _, c := range []struct {
		name    string
		present uint64
		flags   uint32
	}{
		{"native", 0, kcdata.UserWalked}, {"compat", kcdata.ThreadCompatCall, 0},
		{"old", 0, kcdata.UserCompat}, {"proc", kcdata.ThreadCallUnsure, 0},
	} {
		th := in(w.thread(task, c.name, kcdata.StateInterruptible, second, "__schedule", "schedule", c.name), 29)
		th.Linux.Present |= c.present
		if c.flags != 0 {
			th.UserWalk = &kcdata.LinuxUserWalk{Flags: c.flags}
		}
	}
	var text, js strings.Builder
	if err := Text(&text, w.done(), Options{}); err != nil {
		t.Fatal(err)
	}
	if err := JSON(&js, w.done(), Options{}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"native": "in shmget", "compat": "in pause", "old": "in pause", "proc": "in syscall 29"} {
		line := ""
		for l := range strings.Lines(text.String()) {
			if strings.Contains(l, `"`+name+`"`) {
				line = l
			}
		}
		if !strings.Contains(line, want) {
			t.Errorf("%s: %q, want %q", name, line, want)
		}
	}
	for part, n := range map[string]int{`"abi": "compat"`: 2, `"abi": "unknown"`: 1, `"name": "pause"`: 2, `"name": "shmget"`: 1} {
		if got := strings.Count(js.String(), part); got != n {
			t.Errorf("%s: %d times, want %d", part, got, n)
		}
	}
}
