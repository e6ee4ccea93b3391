package snapshot

import (
	"testing"

	"stackshot/internal/engine"
	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
	"stackshot/kcdata"
)

// A task is recorded in many parts. Where memory ends, each part that is not in
// the file is one reason, and the task is one task: in the list, in its length,
// and in the number of tasks seen. Whoever is not in the file is in the list.
func TestLeftOutCountsTasks(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	requireBPF(t)
	big := testtask.Start(t, testtask.ManyThreads(2000)).Children[0].Pid
	for _, engineName := range []string{EngineTrap, EnginePull} {
		s := session(t, Options{Engine: engineName, Buffer: engine.MinBuffer, MaxBuffer: engine.MinBuffer})
		before, _ := s.machine.Tasks()
		res, snap, _ := captureOnce(t, s, Request{})
		wantCensus(t, before, snap)
		type entry struct{ tgid, reason uint32 }
		seen, tasks, threads := map[entry]bool{}, map[uint32]bool{}, 0
		for _, l := range res.LeftOut {
			if seen[entry{l.Tgid, l.Reason}] {
				t.Errorf("%s: task %d stands in the list twice for reason %d", engineName, l.Tgid, l.Reason)
			}
			seen[entry{l.Tgid, l.Reason}], tasks[l.Tgid] = true, true
			if int(l.Tgid) == big {
				threads += int(l.Threads)
			}
		}
		if !tasks[uint32(big)] || threads < 1000 || threads > 2001 {
			t.Errorf("%s: the task of 2,001 threads is left out with %d", engineName, threads)
		}
		if n := len(tasks); int(snap.Capture.LeftOut) != n || kcdata.LeftOutTasks(snap.LeftOut) != n {
			t.Errorf("%s: %d tasks are left out, the file says %d", engineName, n, snap.Capture.LeftOut)
		}
		for _, task := range snap.Tasks {
			tasks[uint32(task.ID)] = true
		}
		if res.Seen != len(tasks) {
			t.Errorf("%s: %d tasks seen, recorded or left out are %d", engineName, res.Seen, len(tasks))
		}
	}
}
