package snapshot

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"stackshot/internal/engine/stop"
	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
	"stackshot/kcdata"
)

func TestEachStoppedCPUHasItsIdleThread(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	requireBPF(t)
	res, snap, _ := takeWhole(t, Options{Engine: EnginePull}, Request{})
	idle := tasksByID(snap)[0]
	if idle == nil {
		t.Fatal("task 0 is not in the file")
	}
	if len(idle.Threads) != len(res.CPUs.Stopped) || !idle.IsKernel() || idle.Transitioning {
		t.Errorf("task 0: %d threads, CPUs %v were stopped; kernel %v", len(idle.Threads), res.CPUs.Stopped, idle.IsKernel())
	}
	threads, whole := threadsByID(snap), 0
	for _, cpu := range res.CPUs.Stopped {
		th := threads[kcdata.IdleThreadID(uint32(cpu))]
		if th == nil {
			t.Errorf("CPU %d has no idle thread", cpu)
			continue
		}
		if !th.IsIdle() || th.Linux.CPU != uint32(cpu) || th.Name != fmt.Sprintf("swapper/%d", cpu) || th.Linux.Tid != 0 || th.IsSelf() {
			t.Errorf("idle thread of CPU %d: %q %+v", cpu, th.Name, th.Linux)
		}
		if len(th.Kernel) == 0 && th.Linux.KstackErr == 0 {
			t.Errorf("idle thread of CPU %d has no stack and no error says why", cpu)
		}
		if names := functions(snap, th.Kernel); slices.ContainsFunc(names, func(f string) bool { return strings.HasPrefix(f, "cpu_startup_entry+") }) {
			whole++
		} else {
			t.Logf("idle thread of CPU %d: error %d, stack %v", cpu, th.Linux.KstackErr, names)
		}
		c, _ := snap.CPU(uint32(cpu))
		if c.Flags&kcdata.CPURanKnown != 0 && (th.Linux.OnCPU == 1) != (c.Flags&kcdata.CPUIdle != 0) {
			t.Errorf("CPU %d idle %v, its idle thread on the CPU %d", cpu, c.Flags&kcdata.CPUIdle != 0, th.Linux.OnCPU)
		}
	}
	// The unwinder may refuse one (a kernel may guard what it likes), not all.
	if whole == 0 {
		t.Error("no idle thread has a stack down to cpu_startup_entry")
	}
	_, snap, _ = takeWhole(t, Options{Engine: EnginePull}, Request{Pids: []int{os.Getpid()}})
	if tasksByID(snap)[0] != nil {
		t.Error("task 0 is in a file of one pid")
	}
}

// Our own threads are marked, and nobody else's.
func TestOwnThreadsAreMarked(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	requireBPF(t)
	for _, engine := range []string{EnginePull, EngineProcfs} {
		s := session(t, Options{Engine: engine})
		_, snap, _ := captureWhole(t, s, Request{})
		own, workers := 0, 0
		for _, task := range snap.Tasks {
			mine := task.ID == uint64(os.Getpid())
			if task.IsSelf() != mine {
				t.Errorf("%s: task %d (%s): self %v", engine, task.ID, task.Name, task.IsSelf())
			}
			for _, th := range task.Threads {
				if th.IsSelf() != mine {
					t.Errorf("%s: thread %d of task %d (%s): self %v", engine, th.ID, task.ID, task.Name, th.IsSelf())
				}
				if mine {
					own++
				}
				if mine && s.team != nil && stop.WorkerOf(s.team.Workers, int(th.Linux.CPU)).Tid == int(th.ID) && th.Linux.Policy == unix.SCHED_FIFO && th.Linux.RtPriority == stop.FifoPriority {
					workers++
				}
			}
		}
		if own == 0 {
			t.Errorf("%s: we are not in the file", engine)
		}
		if engine == EnginePull && workers != len(snap.CPUs) {
			t.Errorf("%d workers in the file, %d CPUs", workers, len(snap.CPUs))
		}
	}
}

// What each CPU ran when the stop took it is a thread of the file that says so
// itself, and the only one on that CPU. (Of a CPU that was left running a sample
// says it: TestIsolatedCPUIsLeftRunning.)
func TestWhatEachCPURan(t *testing.T) {
	testneed.Lab(t, testneed.Scheduler)
	testneed.Slow(t)
	requireBPF(t)
	if err := stop.TryFIFO(); err != nil {
		t.Skipf("needs SCHED_FIFO, without which pull stops nobody: %v", err)
	}
	known, moved, hogs := 0, 0, map[uint64]bool{}
	var res *Result
	var snap *kcdata.Snapshot
	for _, cpu := range onlineCPUs(t) {
		hogs[uint64(testtask.CPUHogs(t, cpu, 1).Children[0].Pid)] = true
	}
	hit, s := 0, session(t, Options{Engine: EnginePull})
	const captures = 8
	for range captures {
		res, snap, _ = captureWhole(t, s, Request{})
		on := map[uint32][]uint64{}
		for _, th := range threadsByID(snap) {
			if th.Linux.OnCPU == 1 && !th.IsSelf() {
				on[th.Linux.CPU] = append(on[th.Linux.CPU], th.ID)
			}
		}
		threads := threadsByID(snap)
		for _, c := range snap.CPUs {
			if want := uint32(kcdata.CPURanKnown | kcdata.CPUStopped); c.Flags&want != want {
				continue
			}
			known++
			id := uint64(c.RanTid)
			if c.Flags&kcdata.CPUIdle != 0 {
				id = kcdata.IdleThreadID(c.CPU)
			}
			th := threads[id]
			switch {
			case th == nil:
				t.Errorf("CPU %d ran thread %d, which is not in the file", c.CPU, id)
			case th.IsSelf():
			case len(on[c.CPU]) != 1 || on[c.CPU][0] != id:
				moved++ // another CPU may take it over between the two arrivals
				t.Logf("CPU %d ran thread %d; on that CPU were %v", c.CPU, id, on[c.CPU])
			case uint32(th.Linux.Tgid) != c.RanTgid:
				t.Errorf("CPU %d ran task %d, its thread %d is of %d", c.CPU, c.RanTgid, id, th.Linux.Tgid)
			}
			if hogs[id] {
				hit++
			}
		}
	}
	if known < captures*len(res.CPUs.Stopped)*3/4 {
		t.Errorf("what ran is known of %d CPUs in %d captures", known, captures)
	}
	if moved > 1+known/8 {
		t.Errorf("of %d threads that CPUs ran, %d do not say so", known, moved)
	}
	if hit == 0 {
		needsRealCPUs(t) // 3 ms bring ordinary work back only where a CPU is not shared
		t.Error("a hog on each CPU, and no capture found one running")
	}
	t.Logf("known of %d, hogs on %d", known, hit)
}

// everyCPU is a --cpu-class for all CPUs, isolated ones too: one class, or
// several in turn.
func everyCPU(tb testing.TB, classes ...string) string {
	tb.Helper()
	var out []string
	for i, cpu := range machine(tb).Online() {
		out = append(out, fmt.Sprintf("%d=%s", cpu, classes[i%len(classes)]))
	}
	return strings.Join(out, ",")
}

func onlineCPUs(tb testing.TB) []int {
	tb.Helper()
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		tb.Fatal(err)
	}
	var out []int
	for cpu := range 1024 {
		if set.IsSet(cpu) {
			out = append(out, cpu)
		}
	}
	return out
}
