package snapshot

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"stackshot/internal/bpf"
	"stackshot/internal/engine/stop"
	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
	"stackshot/internal/topology"
	"stackshot/kcdata"
)

// Tests of machines with other shapes: what a shape asks for is held against
// the machine that runs, whichever that is. Where it has another shape they are
// skipped, and say which they want.

func machine(tb testing.TB) *topology.Topology {
	tb.Helper()
	top, err := topology.Machine()
	if err != nil {
		tb.Fatal(err)
	}
	return top
}

// forEngines runs a test with each engine that stops and that this kernel has.
func forEngines(t *testing.T, test func(t *testing.T, engine string)) {
	t.Helper()
	requireBPF(t)
	for _, engine := range stoppingEngines {
		t.Run(engine, func(t *testing.T) {
			if engine == EngineTrap {
				requireTrap(t)
			}
			test(t, engine)
		})
	}
}

// Whatever the machine's shape, a capture is whole, and its records are of the
// online CPUs, of their kinds and clusters, with an arena for each cluster.
func TestRecordsAreTheMachines(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	top := machine(t)
	t.Logf("%d CPUs, online %v, clusters %+v, P and E %v", len(top.CPUs), top.Online(), top.Clusters, top.AMP)
	forEngines(t, func(t *testing.T, engine string) {
		testtask.Start(t, testtask.ManyThreads(200), testtask.Bystanders(30))
		s := session(t, Options{Engine: engine, StopIsolated: true})
		res, snap, _ := captureWhole(t, s, Request{})
		if online := top.Online(); !slices.Equal(res.CPUs.Online, online) || !slices.Equal(res.CPUs.Stopped, online) {
			t.Errorf("CPUs %+v, online are %v", res.CPUs, online)
		}
		if len(snap.CPUs) != len(top.Online()) || len(snap.LatencyCPUs) != len(snap.CPUs) || len(snap.Phases) != len(snap.CPUs) {
			t.Errorf("%d records of CPUs, %d of latency, %d of phases; %v are online", len(snap.CPUs), len(snap.LatencyCPUs), len(snap.Phases), top.Online())
		}
		threads := 0
		for _, c := range snap.CPUs {
			is, ok := top.CPU(int(c.CPU))
			if !ok || c.Kind != uint32(is.Kind) || c.Cluster != uint32(is.Cluster) {
				t.Errorf("%+v, the machine's %+v", c, is)
			}
			threads += int(c.Threads)
		}
		wantArenas(t, snap, len(top.Clusters))
		if idle := tasksByID(snap)[0]; idle == nil || len(idle.Threads) != len(snap.CPUs) {
			t.Errorf("idle task %+v, %d CPUs", idle, len(snap.CPUs))
		}
		if have := len(threadsByID(snap)); threads > have || threads < have-int(hidden(snap)) {
			t.Errorf("the CPUs count %d threads, the file has %d and %d of them hidden", threads, have, hidden(snap))
		}
	})
}

// wantArenas: one for each cluster, alike in size, and what the CPUs took from
// other clusters is what those gave.
func wantArenas(t *testing.T, snap *kcdata.Snapshot, clusters int) {
	t.Helper()
	if len(snap.Arenas) != clusters || int(snap.Latency.BufferCount) != clusters {
		t.Fatalf("%d arenas, %d counted, in a machine of %d clusters", len(snap.Arenas), snap.Latency.BufferCount, clusters)
	}
	var in, out, byCPUs, byLatency uint64
	for i, a := range snap.Arenas {
		if int(a.Cluster) != i || a.Used > a.Size || a.Size < snap.Arenas[0].Size/2 {
			t.Errorf("arena %d: %+v", i, a)
		}
		in, out = in+a.SpillIn, out+a.SpillOut
	}
	for _, c := range snap.CPUs {
		byCPUs += c.SpillBytes
	}
	for _, c := range snap.LatencyCPUs {
		byLatency += c.InterclusterBufUsed
	}
	if in != out || byCPUs != out || byLatency != out {
		t.Errorf("spilled: arenas gave %d bytes, clusters took %d, CPUs %d, by the latency records %d", in, out, byCPUs, byLatency)
	}
}

// A CPU that is there and offline is in no record, and nothing waits for it.
func TestOfflineCPUIsNotThere(t *testing.T) {
	testneed.Live(t)
	top := machine(t)
	var off []int
	for _, c := range top.CPUs {
		if !c.Online {
			off = append(off, c.ID)
		}
	}
	if len(off) == 0 {
		t.Skip("needs a CPU that is present and offline")
	}
	forEngines(t, func(t *testing.T, engine string) {
		s := session(t, Options{Engine: engine, StopIsolated: true})
		res, snap, _ := captureWhole(t, s, Request{})
		for _, cpu := range off {
			if c, ok := snap.CPU(uint32(cpu)); ok || threadsByID(snap)[kcdata.IdleThreadID(uint32(cpu))] != nil {
				t.Errorf("CPU %d is offline: %+v", cpu, c)
			}
		}
		for _, w := range res.Warnings {
			if strings.HasPrefix(w.Code, "cpu_") {
				t.Errorf("offline from the start are %v: %+v", off, w)
			}
		}
	})
}

// On one CPU the one worker leads, records and reads again, and the queue is
// never waited for.
func TestOneCPU(t *testing.T) {
	testneed.Live(t)
	top := machine(t)
	if len(top.Online()) > 1 {
		t.Skipf("needs a machine of one online CPU, here are %v", top.Online())
	}
	forEngines(t, func(t *testing.T, engine string) {
		f := testtask.Start(t, testtask.ManyThreads(200))
		res, snap, _ := takeWhole(t, Options{Engine: engine}, Request{})
		if !slices.Equal(res.CPUs.Working, top.Online()) || len(snap.CPUs) != 1 || snap.CPUs[0].Flags&kcdata.CPUMain == 0 || snap.CPUs[0].QueueNs != 0 {
			t.Errorf("CPUs %+v, record %+v", res.CPUs, snap.CPUs)
		}
		if task := tasksByID(snap)[uint64(f.Children[0].Pid)]; task == nil || len(task.Threads) != 200 {
			t.Errorf("task of 200 threads: %+v", task)
		}
		if a := snap.Atomicity; a == nil || a.Compared == 0 {
			t.Errorf("second pass: %+v", a)
		}
	})
}

// Where real-time priority is refused the file says so, and how still the
// machine stood all the same.
func TestWithoutFIFO(t *testing.T) {
	testneed.Live(t)
	why := stop.TryFIFO()
	if why == nil {
		t.Skip("needs a machine that refuses SCHED_FIFO")
	}
	withoutFIFO(t)
}

func withoutFIFO(t *testing.T) {
	forEngines(t, func(t *testing.T, engine string) {
		want, code := IsolationNone, "isolation_none"
		if engine == EngineTrap && bestLevel() != IsolationFIFO {
			want, code = bestLevel(), "fifo_refused"
		}
		res, snap, _ := takeWhole(t, Options{Engine: engine}, Request{})
		if res.Isolation != want || snap.Isolation != want || !hasCode(snap, code) {
			t.Errorf("isolation %s, in the file %s, want %s and warning %s in %+v", res.Isolation, snap.Isolation, want, code, snap.Warnings)
		}
		for _, w := range snap.Warnings {
			if w.Code == code && !strings.Contains(w.Text, "CAP_SYS_NICE") {
				t.Errorf("the warning does not name the capability: %s", w.Text)
			}
		}
		if len(snap.Tasks) < 10 || engine == EngineTrap && want != IsolationNone && res.StopBroken > 0 {
			t.Errorf("%s, broken %d times, %d tasks", want, res.StopBroken, len(snap.Tasks))
		}
	})
}

// needsNames skips a test that knows a stack by its functions' names where the kernel
// tells nobody where they are: TestHiddenSymbols is for such a machine.
func needsNames(t *testing.T) {
	t.Helper()
	if v := strings.TrimSpace(slurp(t, "/proc/sys/kernel/kptr_restrict")); v == "2" {
		t.Skip("needs the names of kernel functions: kernel.kptr_restrict is 2")
	}
}

// Where the kernel hides its addresses from everybody, stacks are whole and
// stay numbers, none is scanned for locks, and the file says why.
func TestHiddenSymbols(t *testing.T) {
	testneed.Live(t)
	if v := strings.TrimSpace(slurp(t, "/proc/sys/kernel/kptr_restrict")); v != "2" || os.Geteuid() != 0 {
		t.Skipf("needs root and kernel.kptr_restrict=2, here %s", v)
	}
	forEngines(t, func(t *testing.T, engine string) {
		f := testtask.Start(t, testtask.PipeRead)
		_, snap, _ := takeWhole(t, Options{Engine: engine}, Request{})
		if !hasCode(snap, "no_symbols") {
			t.Errorf("warnings %+v", snap.Warnings)
		}
		if w := snap.WaitTaken; w == nil || w.Sources&kcdata.WaitHasScan != 0 || w.Scanned != 0 {
			t.Errorf("waits %+v, want no scan", w)
		}
		th := threadsByID(snap)[uint64(f.Children[0].Pid)]
		if th == nil || len(th.Kernel) < 4 {
			t.Fatalf("a thread in read(2) of a pipe: %+v", th)
		}
		for _, addr := range th.Kernel {
			if sym, ok := snap.Symbols.Name(addr); ok || addr < 1<<63 {
				t.Errorf("address %#x is named %+v", addr, sym)
			}
		}
	})
}

// A kernel that keeps BPF from reading its memory: a capture is made of /proc, and the
// file says why.
func TestLockedDown(t *testing.T) {
	testneed.Live(t)
	state, err := os.ReadFile("/sys/kernel/security/lockdown")
	if err != nil || !strings.Contains(string(state), "[confidentiality]") {
		t.Skipf("needs a machine that is locked down (lockdown=confidentiality), this one says %q", state)
	}
	for _, engine := range stoppingEngines {
		if _, err := Open(Options{Engine: engine}); !errors.Is(err, bpf.ErrUnsupported) {
			t.Errorf("%s: %v", engine, err)
		}
	}
	res, snap, _ := takeWhole(t, Options{}, Request{})
	if res.Engine != EngineProcfs || snap.Engine != EngineProcfs || !hasCode(snap, "engine_procfs") || len(snap.Tasks) < 10 {
		t.Errorf("engine %s, in the file %s of %d tasks, warnings %+v", res.Engine, snap.Engine, len(snap.Tasks), snap.Warnings)
	}
}
