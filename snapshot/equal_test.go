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
	"stackshot/internal/engine/trap"
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
	return sectionFrom(tb, session(tb, o), pids)
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

// Of a still world the task section of each capture is the same, byte for byte: of either engine, with
// one CPU at work and with all, of one class and of two, recorded whole and in parts, in memory that
// was enough and that grew, whatever the order of the pids asked for, and seconds later.
func TestSectionIsSame(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	requireBPF(t)
	_, pids := stillWorld(t, crowd()...)
	_, _, want := sectionOf(t, Options{}, pids)
	for _, engineName := range userEngines() {
		t.Run(engineName, func(t *testing.T) {
			same := func(what string, s *Session) (*Result, *kcdata.Snapshot) {
				t.Helper()
				res, snap, got := sectionFrom(t, s, pids)
				wantSameSection(t, what, want, got)
				return res, snap
			}
			of := func(o Options) *Session {
				o.Engine, o.Latency = engineName, LatencyOff // durations differ by nature
				return session(t, o)
			}
			var all *Session
			small := of(Options{Buffer: engine.MinBuffer})
			if e, is := small.engine.(*trap.Engine); is {
				if err := e.Load(small.firstSize(scope{tasks: 1, threads: 1}).Within(engine.MinBuffer, 2)); err != nil {
					t.Fatal(err)
				}
				all = sameInParts(t, same)
			} else {
				all = of(Options{})
			}
			if len(all.plan.Stop) > 1 {
				sameOfCPUs(t, all, of, same)
			}
			if res, snap := same("grown", small); res.Tries < 2 || int(snap.Capture.Tries) != res.Tries || res.BufferSize <= engine.MinBuffer {
				t.Errorf("%d tries, the file says %d, with a buffer of %d bytes", res.Tries, snap.Capture.Tries, res.BufferSize)
			}
			slices.Reverse(pids)
			same("pids in another order", all)
		})
	}
}

// sameOfCPUs: whoever records.
func sameOfCPUs(t *testing.T, all *Session, of func(Options) *Session, same func(string, *Session) (*Result, *kcdata.Snapshot)) {
	t.Helper()
	shared := false
	for n := 0; n < 20 && !shared; n++ {
		_, snap := same("all CPUs", all)
		busy := 0
		for _, c := range snap.CPUs {
			busy += flagInt(c.Tasks > 0)
		}
		shared = busy > 1
	}
	if !shared {
		t.Error("no capture had work for two workers")
	}
	cpus := []int{all.plan.Stop[0], all.plan.Stop[len(all.plan.Stop)-1]}
	classes := []string{everyCPU(t, "P", "E"), everyCPU(t, "E", "P")}
	if one := flagInt(all.options.Engine == EngineTrap); !testneed.Length(false, true) { // in short each engine does another
		cpus, classes = cpus[one:one+1], classes[one:one+1]
	}
	for _, cpu := range cpus {
		res, _ := same(fmt.Sprintf("CPU %d", cpu), of(Options{CPUs: fmt.Sprint(cpu)}))
		if len(res.CPUs.Working) != 1 || len(res.CPUs.Stopped) < 2 {
			t.Errorf("CPUs %+v, want one at work and all stopped", res.CPUs)
		}
	}
	for _, class := range classes {
		_, snap := same(class, of(Options{CPUClass: class}))
		if a, b := snap.CPUs[0].Kind, snap.CPUs[1].Kind; a == b || a == kcdata.CPUKindSMP {
			t.Errorf("--cpu-class %s: kinds %d and %d", class, a, b)
		}
	}
}

// sameInParts: the trap records a task in parts, which several CPUs do.
func sameInParts(t *testing.T, same func(string, *Session) (*Result, *kcdata.Snapshot)) *Session {
	t.Helper()
	s, e := trapSession(t, Options{})
	for _, e.Split = range []uint32{1, 0, 16} {
		same(fmt.Sprintf("in parts of %d threads", e.Split), s)
		parts, most := map[uint32]int{}, 0
		for it := range e.Mem.Queue.All() {
			parts[it.Index]++
			most = max(most, parts[it.Index])
		}
		if (most > 1) != (e.Split > 0) {
			t.Errorf("parts of %d threads: at most %d parts of a task", e.Split, most)
		}
	}
	return s
}
