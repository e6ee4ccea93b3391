package snapshot

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/engine"
	"stackshot/internal/testneed"
	"stackshot/internal/testread"
	"stackshot/internal/testtask"
	"stackshot/kcdata"
)

// stillWorld is a fixture of which every task is stopped: nothing of it may
// differ from one capture to the next.
func stillWorld(tb testing.TB, kinds ...testtask.Kind) (*testtask.Fixture, []int) {
	tb.Helper()
	f := testtask.Start(tb, kinds...)
	for i := range f.Children {
		c := &f.Children[i]
		if c.Role == "owner" {
			// It waits for a page nobody will supply, and stands as still as
			// any; a signal would have it try the page for ever.
			continue
		}
		if err := unix.Kill(c.Pid, unix.SIGSTOP); err != nil {
			tb.Fatal(err)
		}
		for _, tid := range c.Tids {
			awaitStop(tb, c.Pid, tid)
		}
	}
	return f, pidsOf(f)
}

// awaitStop waits until a thread is stopped, or past being stopped. What waits
// in state D stays there, and stands still just as well.
func awaitStop(tb testing.TB, pid, tid int) {
	tb.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for {
		state := stateOf(tb, pid, tid)
		if strings.Contains("TtZD", state) {
			return
		}
		if time.Now().After(deadline) {
			tb.Fatalf("thread %d of %d is in state %s after SIGSTOP", tid, pid, state)
		}
		time.Sleep(time.Millisecond)
	}
}

// stateOf is the letter of a thread's state in /proc.
func stateOf(tb testing.TB, pid, tid int) string {
	tb.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/stat", pid, tid))
	if err != nil {
		tb.Fatal(err)
	}
	return string(b)[strings.LastIndexByte(string(b), ')')+2:][:1]
}

// sectionOf captures pids and gives the task section of the file.
func sectionOf(tb testing.TB, o Options, pids []int) (*Result, *kcdata.Snapshot, []byte) {
	tb.Helper()
	o.Engine, o.Latency = EnginePull, LatencyOff // durations differ by nature
	s := session(tb, o)
	defer s.Close()
	return sectionFrom(tb, s, pids)
}

func sectionFrom(tb testing.TB, s *Session, pids []int) (*Result, *kcdata.Snapshot, []byte) {
	tb.Helper()
	res, snap, file := captureWhole(tb, s, Request{Pids: pids})
	part, err := testread.TaskSection(file)
	if err != nil {
		tb.Fatal(err)
	}
	if len(snap.Tasks) != len(pids) || len(part) == 0 {
		tb.Fatalf("%d tasks in a section of %d bytes, want %d tasks", len(snap.Tasks), len(part), len(pids))
	}
	return res, snap, part
}

// wantSameSection names the first difference of two task sections.
func wantSameSection(tb testing.TB, what string, a, b []byte) {
	tb.Helper()
	if bytes.Equal(a, b) {
		return
	}
	at := 0
	for at < min(len(a), len(b)) && a[at] == b[at] {
		at++
	}
	tb.Errorf("%s: task sections of %d and %d bytes differ at byte %d: in one %s, in the other %s",
		what, len(a), len(b), at, itemAt(a, at), itemAt(b, at))
}

// itemAt says which field lies at an offset of a task section.
func itemAt(part []byte, off int) string {
	var path []string
	for it, err := range kcdata.NewEditor(part).Items() {
		if err != nil {
			return err.Error()
		}
		path = path[:min(len(path), it.Depth)]
		if it.Type == kcdata.TypeContainerBegin {
			path = append(path, fmt.Sprintf("%#x(%d)", uint32(it.ContainerType()), it.ContainerID()))
		}
		const header = 16
		if start := it.Offset + header; off < start+len(it.Data) || off < start {
			return fmt.Sprintf("%v item %#x %s", path, uint32(it.Type), fieldAt(it, off-start))
		}
	}
	return "behind the last item"
}

func fieldAt(it kcdata.Item, off int) string {
	spec, _ := kcdata.Lookup(it.Type)
	for _, f := range spec.Fields {
		if off >= f.Offset && off < f.End() {
			return fmt.Sprintf("%s = %x", f.Name, it.Data[f.Offset:f.End()])
		}
	}
	return fmt.Sprintf("byte %d of %q", off, it.Data)
}

// crowd is enough work for two workers, in one task of many threads and many of
// one, stopped on their way through different system calls.
func crowd() []testtask.Kind {
	return []testtask.Kind{
		testtask.Forked, testtask.Stopped, testtask.Sleeping, testtask.PipeRead, testtask.FutexWait,
		testtask.EpollWait, testtask.Poll, testtask.Spinning, testtask.SpinSyscall, testtask.Zombie,
		testtask.ZombieLeader, testtask.MidExit, testtask.MutexWait, testtask.VforkParent, testtask.InPidNS,
		testtask.LongComm, testtask.NastyComm, testtask.ManyThreads(60), testtask.Bystanders(120),
	}
}

// A second capture of a still world is the first one.
func TestSectionIsSameTwice(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	requireBPF(t)
	_, pids := stillWorld(t, crowd()...)
	_, _, first := sectionOf(t, Options{}, pids)
	time.Sleep(1100 * time.Millisecond) // time: a second of the clocks that tick for all; more proves more
	_, _, second := sectionOf(t, Options{}, pids)
	wantSameSection(t, "one second later", first, second)
}

func TestSectionIsSameFor1WorkerAndN(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	requireBPF(t)
	requireTwoCPUs(t)
	_, pids := stillWorld(t, crowd()...)
	one, _, want := sectionOf(t, Options{CPUs: "0"}, pids)
	if len(one.CPUs.Working) != 1 || len(one.CPUs.Stopped) < 2 {
		t.Fatalf("CPUs %+v, want one at work and all stopped", one.CPUs)
	}
	shared, s := false, session(t, Options{Engine: EnginePull, Latency: LatencyOff})
	for range 6 {
		res, snap, got := sectionFrom(t, s, pids)
		if len(res.CPUs.Working) < 2 {
			t.Fatalf("CPUs %+v, want two at work", res.CPUs)
		}
		busy := 0
		for _, c := range snap.CPUs {
			busy += flagInt(c.Tasks > 0)
		}
		shared = shared || busy > 1
		wantSameSection(t, "1 worker and N", want, got)
	}
	if !shared {
		t.Error("no capture had work for two workers")
	}
}

func TestSectionIsSameForSMPAndAMP(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	requireBPF(t)
	requireTwoCPUs(t)
	_, pids := stillWorld(t, crowd()...)
	_, _, want := sectionOf(t, Options{}, pids)
	for _, class := range []string{everyCPU(t, "P", "E"), everyCPU(t, "E", "P")} {
		res, snap, got := sectionOf(t, Options{CPUClass: class}, pids)
		kinds := map[uint32]uint32{}
		for _, c := range snap.CPUs {
			kinds[c.CPU] = c.Kind
		}
		if kinds[0] == kinds[1] || kinds[0] == kcdata.CPUKindSMP {
			t.Fatalf("--cpu-class %s: kinds %v of CPUs %+v", class, kinds, res.CPUs)
		}
		wantSameSection(t, "SMP and "+class, want, got)
	}
}

// The crowd does not fit in the least buffer there is.
func TestSectionIsSameAfterRetries(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	requireBPF(t)
	_, pids := stillWorld(t, crowd()...)
	big, _, want := sectionOf(t, Options{Buffer: 16 << 20}, pids)
	if big.Tries != 1 {
		t.Errorf("%d tries with a buffer of 16 MiB, want 1", big.Tries)
	}
	small, snap, got := sectionOf(t, Options{Buffer: engine.MinBuffer}, pids)
	if small.Tries < 2 {
		t.Errorf("%d tries with a buffer of %d bytes for %d bytes of tasks, want more than one", small.Tries, engine.MinBuffer, len(got))
	}
	if int(snap.Capture.Tries) != small.Tries || small.BufferSize <= engine.MinBuffer {
		t.Errorf("the file says %d tries, the result %d with a buffer of %d bytes", snap.Capture.Tries, small.Tries, small.BufferSize)
	}
	wantSameSection(t, "big buffer and small", want, got)
}

// Order comes from the census, not from the request.
func TestSectionIsSameForAnyOrderOfPids(t *testing.T) {
	testneed.Live(t)
	requireBPF(t)
	_, pids := stillWorld(t, testtask.Bystanders(20), testtask.ManyThreads(12))
	_, _, want := sectionOf(t, Options{}, pids)
	slices.Reverse(pids)
	_, _, got := sectionOf(t, Options{}, pids)
	wantSameSection(t, "pids in another order", want, got)
}
