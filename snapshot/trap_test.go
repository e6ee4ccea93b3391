package snapshot

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/engine"
	"stackshot/internal/engine/trap"
	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
	"stackshot/kcdata"
)

// trapSession opens engine trap; where the kernel has it not, the test is none.
func trapSession(tb testing.TB, o Options) (*Session, *trap.Engine) {
	tb.Helper()
	requireTrap(tb)
	o.Engine = EngineTrap
	if o.Latency == "" {
		o.Latency = LatencyOff // durations differ by nature, and sections are compared
	}
	s := session(tb, o)
	return s, s.engine.(*trap.Engine)
}

// The task section of a still world is the same from both engines, byte for
// byte, with one CPU at work and with all.
func TestTrapSectionIsPulls(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	requireBPF(t)
	_, pids := stillWorld(t, crowd()...)
	_, _, want := sectionOf(t, Options{}, pids)
	plan, err := planCPUs(Options{})
	if err != nil {
		t.Fatal(err)
	}
	first, last := fmt.Sprint(plan.Stop[0]), fmt.Sprint(plan.Stop[len(plan.Stop)-1])
	all := []Options{{}, {CPUs: last}, {CPUClass: everyCPU(t, "P", "E")}, {CPUs: first}, {CPUClass: everyCPU(t, "E", "P")}}
	for _, o := range all[:testneed.Length(3, len(all))] {
		s, _ := trapSession(t, o)
		_, _, got := sectionFrom(t, s, pids)
		wantSameSection(t, fmt.Sprintf("pull, and trap with %+v", o), want, got)
		s.Close()
	}
}

// A task recorded in parts by several CPUs is, byte for byte, the task recorded
// whole by one.
func TestTrapPartsAreTheWhole(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	requireBPF(t)
	f := testtask.Start(t, testtask.ManyThreads(1000), testtask.ManyThreads(130))
	stopAll(t, f)
	var want, got [][]byte
	s, e := trapSession(t, Options{})
	for _, split := range []uint32{0, 64, 7, 1} {
		e.Split = split
		_, _, file := captureWhole(t, s, Request{})
		got = tasksIn(t, file, pidsOf(f))
		if want == nil {
			want = got
		}
		for i := range got {
			if len(got[i]) == 0 {
				t.Fatalf("parts of %d threads: task %d is not in the file", split, pidsOf(f)[i])
			}
			wantSameSection(t, fmt.Sprintf("whole, and in parts of %d threads", split), want[i], got[i])
		}
		parts := map[uint32]int{}
		for it := range e.Mem.Queue.All() {
			parts[it.Index]++
		}
		most := 0
		for _, n := range parts {
			most = max(most, n)
		}
		if (most > 1) != (split > 0) {
			t.Errorf("parts of %d threads: at most %d parts of a task", split, most)
		}
	}
}

func stopAll(tb testing.TB, f *testtask.Fixture) {
	tb.Helper()
	for _, c := range f.Children {
		if err := unix.Kill(c.Pid, unix.SIGSTOP); err != nil {
			tb.Fatal(err)
		}
		for _, tid := range c.Tids {
			awaitStop(tb, c.Pid, tid)
		}
	}
}

// tasksIn cuts the containers of some tasks out of a file.
func tasksIn(tb testing.TB, file []byte, pids []int) [][]byte {
	tb.Helper()
	r, err := kcdata.NewReader(file)
	if err != nil {
		tb.Fatal(err)
	}
	out := make([][]byte, len(pids))
	begin, at := 0, -1
	for it, err := range r.Items() {
		if err != nil {
			tb.Fatal(err)
		}
		switch {
		case it.Type == kcdata.TypeContainerBegin && it.Depth == 0:
			begin, at = it.Offset, slices.Index(pids, int(it.ContainerID()))
		case it.Type == kcdata.TypeContainerEnd && it.Depth == 0 && at >= 0:
			out[at] = file[begin : it.Offset+16] // a header
		}
	}
	return out
}

// The trap sees the tasks that /proc lists and whose life spans the capture,
// at the isolation it states, and frees the machine within the budget.
func TestTrapSeesEveryTask(t *testing.T) {
	testneed.Smoke(t)
	testneed.Slow(t)
	s, e := trapSession(t, Options{})
	for range testneed.Length(4, 10) {
		before, _ := s.machine.Tasks()
		res, snap, _ := captureWhole(t, s, Request{})
		after, _ := s.machine.Tasks()
		have := tasksByID(snap)
		for _, tgid := range before {
			if slices.Contains(after, tgid) && have[uint64(tgid)] == nil {
				t.Errorf("task %d is in /proc before and after, not in the file", tgid)
			}
		}
		if have[0] == nil || len(have[0].Threads) != len(res.CPUs.Stopped) {
			t.Errorf("idle task %+v, want a thread for each of %v", have[0], res.CPUs.Stopped)
		}
		if e.Caps().Isolation == IsolationIRQOff && res.StopBroken != 0 {
			t.Errorf("at irqoff the stop was broken %d times", res.StopBroken)
		}
	}
}

// Too little memory ends the try at once, and a larger try has everything.
func TestTrapGrows(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	requireBPF(t)
	_, pids := stillWorld(t, crowd()...)
	_, _, want := sectionOf(t, Options{}, pids)
	s, e := trapSession(t, Options{Buffer: engine.MinBuffer})
	if err := e.Load(s.firstSize(scope{tasks: 1, threads: 1}).Within(engine.MinBuffer, 2)); err != nil {
		t.Fatal(err)
	}
	res, _, got := sectionFrom(t, s, pids)
	if res.Tries < 2 {
		t.Errorf("%d tries with %d bytes", res.Tries, engine.MinBuffer)
	}
	wantSameSection(t, "pull, and trap grown", want, got)
}

// The pause budget ends recording, and what it cost is said.
func TestTrapKeepsThePause(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	testneed.Slow(t)
	needsRealCPUs(t)
	requireBPF(t)
	testtask.Start(t, testtask.ManyThreads(3000))
	s, _ := trapSession(t, Options{MaxPause: time.Millisecond, ArrivalBudget: 500 * time.Microsecond})
	for range 5 {
		res, _, _ := captureOnce(t, s, Request{})
		if res.Stopped > 3*time.Millisecond {
			t.Errorf("stopped for %v with a budget of 1 ms", res.Stopped)
		}
		if len(res.LeftOut) == 0 && res.Stopped > time.Millisecond {
			t.Errorf("stopped for %v, nothing left out", res.Stopped)
		}
	}
}
