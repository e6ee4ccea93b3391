package snapshot

import (
	"slices"
	"testing"

	"stackshot/internal/capture"
	"stackshot/internal/clock"
	"stackshot/internal/engine/proc"
	"stackshot/internal/procfs"
	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
	"stackshot/kcdata"
	"stackshot/workqueue"
)

// A task that is asked for by number, and that this kernel hides from BPF, is in the
// file, read from /proc: it is not "gone". Where the kernel hides none the loop is empty.
func TestHiddenTaskAskedFor(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	requireBPF(t)
	before, err := procfs.FS{}.Tasks()
	if err != nil {
		t.Fatal(err)
	}
	shown := shownToBPF(t)
	after, err := procfs.FS{}.Tasks()
	if err != nil {
		t.Fatal(err)
	}
	hidden := slices.DeleteFunc(before, func(tgid int) bool { return shown[tgid] || !slices.Contains(after, tgid) })
	t.Logf("hidden from BPF: %v", hidden)
	for _, engine := range []string{EnginePull, EngineTrap} {
		for _, tgid := range hidden {
			s := session(t, Options{Engine: engine})
			res, snap, _ := captureWhole(t, s, Request{Pids: []int{tgid}})
			task := tasksByID(snap)[uint64(tgid)]
			if res.Tasks != 1 || task == nil || len(task.Threads) == 0 || !hiddenIn(t, snap)[uint64(tgid)] {
				t.Errorf("%s, task %d: %d tasks, warnings %v, left out %v", engine, tgid, res.Tasks, snap.Warnings, snap.LeftOut)
			}
		}
	}
}

// The same on every kernel, of what an engine that found nothing leaves behind: who
// lives is read, once however many parts it had; who has ended, who has begun since
// and who was left out for another reason stay as they were.
func TestReconcileAsked(t *testing.T) {
	testneed.Live(t)
	requireBPF(t)
	s := session(t, Options{Engine: EnginePull})
	lives := int32(testtask.Start(t, testtask.Sleeping).Children[0].Pid)
	const ended = 1<<22 + 1 // above the highest pid there can be
	missed := func(tgid int32, reason uint32) capture.Failure {
		return capture.Failure{Item: workqueue.Item{Tgid: tgid, Count: 1}, Reason: reason}
	}
	failed := []capture.Failure{missed(lives, kcdata.LeftOutVanished), missed(lives, kcdata.LeftOutVanished),
		missed(ended, kcdata.LeftOutVanished), missed(lives, kcdata.LeftOutMaxPause)}
	c := &capture.Raw{Engine: EnginePull, SeenTasks: 3, Failed: slices.Clone(failed)}
	s.reconcileAsked(c) // the stop was at 0: before everybody's start
	if len(c.Failed) != len(failed) || len(c.Recorded) != 0 {
		t.Errorf("not there at the stop: %d recorded, failed %v", len(c.Recorded), c.Failed)
	}
	c.At.Boottime = clock.Now().Boottime + 2*proc.TickNs
	s.reconcileAsked(c)
	if !slices.Equal(c.Failed, failed[2:]) || len(c.Recorded) != 1 || c.Recorded[0].Item.Tgid != lives || len(c.Warnings) != 1 {
		t.Errorf("%d recorded, failed %v, warnings %v", len(c.Recorded), c.Failed, c.Warnings)
	}
}
