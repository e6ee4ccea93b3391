package report

import (
	"slices"
	"strings"
	"testing"

	"stackshot/kcdata"
)

// ofTasks are the threads of some tasks.
func ofTasks(s *kcdata.Snapshot, pids ...int) map[*kcdata.Thread]bool {
	only := map[*kcdata.Thread]bool{}
	for _, t := range s.Tasks {
		for _, th := range t.Threads {
			if slices.Contains(pids, int(t.ID)) {
				only[th] = true
			}
		}
	}
	return only
}

// Nothing that is chosen is all, not nothing; and what is not in the file is an alarm.
func TestOnly(t *testing.T) {
	s := deadNFSServer()
	none := textOf(t, s, Options{Only: map[*kcdata.Thread]bool{}, Absent: []uint64{7, 9, 10}})
	for _, want := range []string{"77 threads: 0 shown, 0 idle kernel threads folded, 0 idle threads of CPUs folded, 0 of our own hidden, 77 not asked for", "!! asked for, but not in the file: pid 7,9-10"} {
		if !strings.Contains(none, want) {
			t.Errorf("no %q in\n%s", want, none)
		}
	}
	if one := textOf(t, s, Options{Only: ofTasks(s, 812)}); !strings.Contains(one, "\n77 threads in 65 tasks: 2 in uninterruptible sleep (D), 6 sleeping, 69 not asked for\n") || strings.Contains(one, "bash") {
		t.Errorf("%s", one)
	}
	if all := textOf(t, s, Options{}); !strings.Contains(all, "77 threads: 52 shown") || !strings.Contains(all, " 0 not asked for") {
		t.Errorf("%s", all)
	}
}
