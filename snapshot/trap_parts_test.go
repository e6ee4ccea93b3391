package snapshot

import (
	"testing"

	"golang.org/x/sys/unix"

	"stackshot/internal/bpf"
	"stackshot/internal/capture"
	"stackshot/internal/engine/stop"
	"stackshot/internal/engine/trap"
	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
	"stackshot/kcdata"
)

// A part whose first thread has ended costs its own threads and no more: the
// task is in the file with the others, whole as a container. Without the part
// that begins it there is no task.
func TestTrapPartThatVanished(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	requireBPF(t)
	f := testtask.Start(t, testtask.ManyThreads(100))
	s, e := trapSession(t, Options{})
	e.Split = 16
	captureWhole(t, s, Request{})
	tgid := int32(f.Children[0].Pid)
	var mine []int
	n := 0
	for it := range e.Mem.Queue.All() {
		if it.Tgid == tgid {
			mine = append(mine, n)
		}
		n++
	}
	if len(mine) != 7 {
		t.Fatalf("100 threads are in %d parts", len(mine))
	}
	for _, c := range []struct{ lost, threads, missed, vanished int }{{3, 84, 1, 0}, {6, 96, 1, 0}, {0, 0, 0, 7}} {
		part := &e.Loaded.Parts[mine[c.lost]]
		was := *part
		*part = bpf.TrapPart{Worker: was.Worker, State: bpf.PartVanished}
		got := &capture.Raw{}
		e.Parts(got, &trap.Try{Try: &stop.Try{}})
		*part = was
		var list []capture.Part
		for _, r := range got.InOrder() {
			if r.Item.Tgid == tgid {
				list = append(list, r)
			}
		}
		vanished, missed := 0, 0
		for _, l := range got.Failed {
			switch {
			case l.Item.Tgid != tgid:
			case l.Reason == kcdata.LeftOutVanished:
				vanished++
			case l.Reason == kcdata.LeftOutError && l.Errno == unix.ESRCH:
				missed++ // its other threads may live
			}
		}
		threads := 0
		if len(list) > 0 {
			threads = threadsIn(t, list)
		}
		if threads != c.threads || vanished != c.vanished || missed != c.missed {
			t.Errorf("without part %d: %d threads, %d parts vanished, %d missed; want %+v", c.lost, threads, vanished, missed, c)
		}
	}
}

// A session grows while one of its workers is away: what that one may still
// come back to stays, and goes when it has come back.
func TestTrapGrowsWithAWorkerAway(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	testneed.Slow(t)
	requireBPF(t)
	s, e := trapSession(t, Options{})
	captureWhole(t, s, Request{})
	w, old := e.Team.Workers[len(e.Team.Workers)-1], e.Loaded
	w.Away = true
	if err := e.Load(e.Mem.AtLeast(s.firstSize(scope{tasks: 9000, threads: 9000}))); err != nil {
		t.Fatal(err)
	}
	if len(old.Workers) == 0 || len(e.Retired) != 1 {
		t.Errorf("the trap of a worker that is away was closed; kept: %d", len(e.Retired))
	}
	w.Away = false
	if err := e.Load(e.Mem.AtLeast(s.firstSize(scope{tasks: 20000, threads: 20000}))); err != nil {
		t.Fatal(err)
	}
	if len(old.Workers) != 0 || len(e.Retired) != 0 {
		t.Errorf("the worker is back and %d traps are kept", len(e.Retired))
	}
	captureWhole(t, s, Request{})
}

// threadsIn counts the threads in parts that must make one whole task container.
func threadsIn(t *testing.T, parts []capture.Part) (n int) {
	t.Helper()
	var pieces [][]byte
	for _, p := range parts {
		pieces = append(pieces, p.Pieces...)
	}
	var last kcdata.Item
	for it, err := range kcdata.NewEditor(pieces...).Items() {
		if err != nil {
			t.Fatal(err)
		}
		if last = it; it.Type == kcdata.TypeContainerBegin && it.ContainerType() == kcdata.TypeThread {
			n++
		}
	}
	if last.Depth != 0 || last.Type != kcdata.TypeContainerEnd {
		t.Fatalf("the last item, %+v, does not end the task", last)
	}
	return n
}
