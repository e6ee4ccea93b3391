package account

import (
	"strings"
	"testing"

	"stackshot/kcdata"
)

// Earlier files list a task once for each of its parts: it is one task.
func TestLeftOutTasksCountOnce(t *testing.T) {
	s := &kcdata.Snapshot{HasCapture: true, LeftOut: []kcdata.LinuxLeftOut{
		{Tgid: 9, Reason: kcdata.LeftOutNoSpace, Threads: 64}, {Tgid: 7, Reason: kcdata.LeftOutNoSpace, Threads: 1},
		{Tgid: 9, Reason: kcdata.LeftOutNoSpace, Threads: 36},
	}}
	got := strings.Join(LeftOut(s), "\n")
	if want := "left out, the buffer was full: 2 tasks with 101 threads (pid 7,9)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
