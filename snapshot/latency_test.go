package snapshot

import (
	"testing"

	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
	"stackshot/kcdata"
)

// within says whether a and b differ by at most share of the larger.
func about(a, b uint64, share float64) bool {
	return float64(max(a, b)-min(a, b)) <= share*float64(max(a, b))
}

// On each CPU the phases add up to the whole, within 2 %, and recording to what
// its tasks took: these are measured apart.
func TestLatencyPhasesAddUp(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	testneed.Slow(t)
	for _, engine := range []string{EngineTrap, EnginePull} {
		t.Run(engine, func(t *testing.T) {
			requireBPF(t)
			testtask.Start(t, testtask.ManyThreads(500), testtask.Bystanders(50))
			s := session(t, Options{Engine: engine})
			_, snap, _ := captureWhole(t, s, Request{})
			var recording, tasks uint64
			for _, p := range snap.Phases {
				sum := p.EnterNs + p.ArrivalNs + p.HoldNs + p.CensusNs + p.QueueNs + p.RecordNs + p.DrainNs + p.VerifyNs + p.ReleaseNs + p.ExitNs
				if !about(sum, p.TotalNs, 0.02) {
					t.Errorf("phases of CPU %d add up to %d of %d ns: %+v", p.CPU, sum, p.TotalNs, p)
				}
				recording += p.RecordNs
			}
			for _, task := range snap.Tasks {
				l := task.Latency
				if l == nil || l.TaskUniqueID != task.ID {
					t.Fatalf("task %d: latency %+v", task.ID, l)
				}
				tasks += l.Setup + l.CurTsnap + l.ThreadDataLoop + l.End
			}
			if len(snap.Phases) == 0 || !about(recording, tasks, 0.1) {
				t.Errorf("recording %d ns, tasks %d ns, on %d CPUs", recording, tasks, len(snap.Phases))
			}
		})
	}
}

// A thread's parts are within what its task took, and the unwinder's within
// what its CPU recorded.
func TestLatencyOfThreads(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	for _, engine := range []string{EngineTrap, EnginePull} {
		t.Run(engine, func(t *testing.T) {
			requireBPF(t)
			f := testtask.Start(t, testtask.ManyThreads(300))
			s := session(t, Options{Engine: engine, Latency: LatencyThread})
			_, snap, _ := captureWhole(t, s, Request{})
			task := tasksByID(snap)[uint64(f.Children[0].Pid)]
			var threads, unwound uint64
			for _, th := range task.Threads {
				l := th.Latency
				if l == nil || l.ThreadID != th.ID || l.KernelStack == 0 {
					t.Fatalf("thread %d: latency %+v", th.ID, l)
				}
				threads += l.CurThsnap1 + l.KernelStack + l.CurThsnap2 + l.Misc
			}
			if l := task.Latency; threads > l.ThreadDataLoop {
				t.Errorf("threads %d ns of %+v", threads, l)
			}
			if engine != EngineTrap {
				return
			}
			for _, p := range snap.Phases {
				if p.Present&kcdata.PhasesHaveUnwind == 0 || p.UnwindNs > p.RecordNs {
					t.Errorf("%+v: want unwinding within recording", p)
				}
				unwound += p.UnwindNs
			}
			if unwound == 0 {
				t.Error("no CPU unwound anything")
			}
		})
	}
}

// What is off is absent, not zero.
func TestLatencyOff(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	for _, engine := range []string{EngineTrap, EnginePull, EngineProcfs} {
		t.Run(engine, func(t *testing.T) {
			requireBPF(t)
			_, snap, _ := take(t, Options{Engine: engine, Latency: LatencyOff}, Request{})
			if snap.Phases != nil || snap.Latency != nil || snap.LatencyCPUs != nil || snap.Arenas != nil {
				t.Errorf("%+v, %+v, %+v, %+v", snap.Phases, snap.Latency, snap.LatencyCPUs, snap.Arenas)
			}
			for _, task := range snap.Tasks {
				if task.Latency != nil {
					t.Fatalf("task %d: %+v", task.ID, task.Latency)
				}
				for _, th := range task.Threads {
					if th.Latency != nil {
						t.Fatalf("thread %d: %+v", th.ID, th.Latency)
					}
				}
			}
		})
	}
}

// The trace is there when it is asked for, or when something went wrong.
func TestTraceIsKept(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	for _, engine := range []string{EngineTrap, EnginePull} {
		t.Run(engine, func(t *testing.T) {
			requireBPF(t)
			s := session(t, Options{Engine: engine})
			res, snap, _ := captureWhole(t, s, Request{})
			if snap.Trace != nil && res.StopBroken == 0 && res.Tries == 1 {
				t.Errorf("%d events that nobody asked for", len(snap.Trace))
			}
			res, snap, _ = captureWhole(t, s, Request{Trace: true})
			seen := map[uint32]map[uint32]int{}
			last := uint64(0)
			for _, e := range snap.Trace {
				if e.AtNs < last {
					t.Errorf("event %+v before %d", e, last)
				}
				last = e.AtNs
				if seen[e.CPU] == nil {
					seen[e.CPU] = map[uint32]int{}
				}
				seen[e.CPU][e.Place]++
			}
			for _, cpu := range res.CPUs.Stopped {
				for _, place := range []uint32{kcdata.TraceDrained, kcdata.TraceReleased, kcdata.TraceLeft} {
					if n := seen[uint32(cpu)][place]; n < 1 || n > res.Tries {
						t.Errorf("CPU %d: place %d %d times in %d tries", cpu, place, n, res.Tries)
					}
				}
			}
		})
	}
}
