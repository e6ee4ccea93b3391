package snapshot

import (
	"strings"
	"testing"

	"stackshot/internal/model"
	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
	"stackshot/internal/waits"
	"stackshot/kcdata"
)

// Of knows what every sleeping thread of this machine waits for, and what the processes do that
// the test made. Threads without a kernel stack, and in D without a record, are no part of it.
func TestWaitsOfThisMachine(t *testing.T) {
	testneed.Lab(t, testneed.Machine)
	requireBPF(t)
	f := testtask.Start(t, testtask.DoWait, testtask.VforkParent, testtask.Stopped, testtask.PipeRead, testtask.FutexWait,
		testtask.EpollWait, testtask.Poll, testtask.Sleeping, testtask.Forked, testtask.TracedExit, testtask.ZombieLeader, testtask.MutexWait)
	s := session(t, Options{UserStacks: UserStacksOff})
	_, snap, _ := captureWhole(t, s, Request{})
	w := waits.Of(snap)
	if !w.OneInstant && snap.Isolation == "irqoff" {
		t.Errorf("not of one instant: %q", w.Limits)
	}
	unknown, asleep := 0, 0
	for _, x := range w.All {
		if x.State.Class != model.Sleeping && x.State.Class != model.Idle || len(x.Thread.Kernel) == 0 {
			continue
		}
		asleep++
		if x.Kind == waits.Other {
			unknown++
			t.Errorf("%s %d: no row knows %s", x.Task.Name, x.Thread.ID, strings.Join(functions(snap, x.Thread.Kernel), " "))
		}
	}
	t.Logf("%d of %d sleeping threads wait for something unknown", unknown, asleep)
	mutex := waits.Other
	if snap.WaitTaken != nil && snap.WaitTaken.Sources&(kcdata.WaitHasBlockedOn|kcdata.WaitHasScan) != 0 {
		mutex = waits.Mutex
	}
	for _, c := range []struct {
		kind testtask.Kind
		role string
		want waits.Kind
	}{
		{testtask.DoWait, "", waits.ChildEnd}, {testtask.VforkParent, "", waits.Vfork}, {testtask.Stopped, "", waits.Stopped},
		{testtask.PipeRead, "", waits.Pipe}, {testtask.FutexWait, "", waits.Futex}, {testtask.EpollWait, "", waits.Poll},
		{testtask.Poll, "", waits.Poll}, {testtask.Sleeping, "", waits.Timer}, {testtask.Forked, "", waits.Signal},
		{testtask.TracedExit, "", waits.Traced}, {testtask.MutexWait, "owner", waits.Userfault}, {testtask.MutexWait, "first", mutex},
	} {
		child := f.One(c.kind, c.role)
		got := waitsFor(w, child.Pid)
		if got == nil || got.Kind != c.want {
			t.Errorf("%v: %+v, want %s", child, got, c.want)
		}
	}
	parent := waitsFor(w, f.One(testtask.DoWait, "").Pid)
	if parent == nil || len(parent.Owners) != 1 || int(parent.Owners[0].Pid) != f.One(testtask.DoWait, "child").Pid || parent.Owners[0].Thread == nil {
		t.Errorf("who waits for its child: %+v", parent)
	}
}

// waitsFor is what the leader of pid waits for; nil: nothing.
func waitsFor(w *waits.Waits, pid int) *waits.Wait {
	for _, x := range w.All {
		if x.Thread.ID == uint64(pid) {
			return x
		}
	}
	return nil
}
