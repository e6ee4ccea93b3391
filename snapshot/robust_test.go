package snapshot

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"os"
	"slices"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"stackshot/internal/clock"
	"stackshot/internal/engine"
	"stackshot/internal/engine/stop"
	"stackshot/internal/engine/trap"
	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
	"stackshot/kcdata"
)

// openTest is a session of engine pull with test hooks.
func openTest(t *testing.T, o Options, h engine.Hooks) *Session {
	t.Helper()
	requireBPF(t)
	o.Engine = cmp.Or(o.Engine, EnginePull)
	return hooked(t, o, h)
}

func (s *Session) mustTake(t *testing.T) (*Result, *kcdata.Snapshot) {
	t.Helper()
	r, snap, err := s.takeParsed()
	if err != nil {
		t.Fatal(err)
	}
	return r, snap
}

func (s *Session) takeParsed() (*Result, *kcdata.Snapshot, error) {
	var buf bytes.Buffer
	r, err := s.Take(context.Background(), Request{Output: &buf})
	if err != nil {
		return nil, nil, err
	}
	snap, err := kcdata.ParseSnapshot(buf.Bytes())
	return r, snap, err
}

func needCPUs(t *testing.T, s *Session, n int) {
	t.Helper()
	if len(s.plan.Stop) < n {
		t.Skipf("needs %d CPUs that can be stopped, this machine has %d", n, len(s.plan.Stop))
	}
}

func hasWarning(r *Result, code string) bool {
	return slices.ContainsFunc(r.Warnings, func(w kcdata.Warning) bool { return w.Code == code })
}

// rawSleep sleeps in the kernel without telling the Go runtime.
func rawSleep(d time.Duration) {
	ts := unix.NsecToTimespec(int64(d))
	unix.RawSyscall6(unix.SYS_CLOCK_NANOSLEEP, unix.CLOCK_MONOTONIC, 0, uintptr(unsafe.Pointer(&ts)), 0, 0, 0)
}

// A worker that sleeps inside the window breaks the stop: the file says so,
// and the others leave at their own deadline.
func TestInvariant1BrokenStopIsSaid(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	testneed.Slow(t)
	const pause = 40 * time.Millisecond
	sleeper := -1
	s := openTest(t, Options{MaxPause: pause}, engine.Hooks{InWindow: func(cpu int) {
		if cpu == sleeper {
			rawSleep(150 * time.Millisecond)
		}
	}})
	needCPUs(t, s, 2)
	for _, cpu := range s.plan.Stop { // an ordinary worker, then the main one
		sleeper = cpu
		held := time.Hour
		for range 3 { // a shared machine may be held longer by its host
			r, snap := s.mustTake(t)
			if r.StopBroken == 0 || !hasWarning(r, "stop_broken") || snap.Capture.StopBroken == 0 {
				t.Errorf("CPU %d slept in the window: broken %d, warnings %v", cpu, r.StopBroken, r.Warnings)
			}
			var longest time.Duration
			for _, c := range snap.CPUs {
				if int(c.CPU) != sleeper {
					longest = max(longest, time.Duration(c.ReleaseNs-c.ArriveNs))
				} else if c.Switches == 0 {
					t.Errorf("CPU %d slept, and counts no switch", cpu)
				}
			}
			held = min(held, longest)
		}
		if held > pause+20*time.Millisecond {
			t.Errorf("CPU %d slept, another was held %v, the pause is bounded by %v", cpu, held, pause)
		}
	}
}

// A worker that does not come back at all is given up: the capture ends
// without it and says so, the next one goes on with who is there, and when it
// comes back it is taken on again.
func TestWorkerAway(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	testneed.Slow(t)
	sleeper := -1
	// Enough for some tasks, and far less than the worker sleeps.
	pause := min(slow(20*time.Millisecond), 300*time.Millisecond)
	s := openTest(t, Options{MaxPause: pause}, engine.Hooks{InWindow: func(cpu int) {
		if cpu == sleeper {
			sleeper = -1
			rawSleep(2500 * time.Millisecond)
		}
	}})
	needCPUs(t, s, 2)
	sleeper = s.team.Workers[1].CPU
	cpu := sleeper
	for round, wantAway := range []bool{true, true, false} {
		if round == 2 {
			time.Sleep(2500 * time.Millisecond)
		}
		r, snap := s.mustTake(t)
		if slices.Contains(r.CPUs.Missing, cpu) != wantAway || r.Whole() && wantAway {
			t.Errorf("round %d: missing %v, whole %v", round, r.CPUs.Missing, r.Whole())
		}
		if hasWarning(r, "worker_away") != (round == 0) {
			t.Errorf("round %d: warnings %v", round, r.Warnings)
		}
		if len(snap.Tasks) < 10 || len(snap.Problems) > 0 {
			t.Errorf("round %d: %d tasks, %v", round, len(snap.Tasks), snap.Problems)
		}
	}
}

// A machine that cannot be stopped at all, because whoever leads comes too
// late: auto falls back on /proc and says why, the engines say so in their error.
func TestNoStopFallsBack(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	requireBPF(t)
	const budget = 5 * time.Millisecond
	var s *Session
	tardy := engine.Hooks{BeforeArrival: func(int) {
		for until := clock.Nanotime() + int64(3*budget); clock.Nanotime() < until; {
		}
	}}
	for _, engineName := range []string{EngineAuto, EngineTrap, EnginePull} {
		if engineName == EngineTrap && !trapHere() {
			continue
		}
		s = hooked(t, Options{Engine: engineName, ArrivalBudget: budget}, tardy)
		needCPUs(t, s, 2)
		var file bytes.Buffer
		r, err := s.Take(context.Background(), Request{Output: &file})
		switch {
		case engineName != EngineAuto && !errors.Is(err, engine.ErrNotStopped):
			t.Errorf("%s: %v", engineName, err)
		case engineName == EngineAuto && err != nil:
			t.Errorf("auto: %v", err)
		case engineName == EngineAuto && (r.Engine != EngineProcfs || !hasWarning(r, "engine_procfs") || r.Tasks < 10):
			t.Errorf("auto: %+v", r)
		}
		if engineName == EngineAuto && err == nil {
			snap, err := parse(t, file.Bytes())
			if err != nil || len(snap.Trace) == 0 || snap.Tries[0].Outcome != kcdata.TryNotStopped || snap.Tries[len(snap.Tries)-1].Outcome != kcdata.TryWhole {
				t.Errorf("auto: %v; the file does not tell of the tries: %+v", err, snap)
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A CPU kept for good by somebody's FIFO-99 task: the capture goes on without
// it, names it, and has the stack that it was in; and Close comes back beside it and leaves no thread and no file behind.
func TestHoggedCPUIsNamed(t *testing.T) {
	testneed.Lab(t, testneed.Scheduler)
	testneed.Slow(t)
	requireBPF(t)
	for _, engine := range []string{EnginePull, EngineTrap} {
		t.Run(engine, func(t *testing.T) { hoggedCPUIsNamed(t, engine) })
	}
}

func hoggedCPUIsNamed(t *testing.T, engineName string) {
	unlock, err := LockMachine(t.Context(), testneed.Patience) // nobody else's capture meets the hog
	if err != nil {
		t.Fatal(err)
	}
	warm := openTest(t, Options{Engine: engineName}, engine.Hooks{}) // what opens files once, has
	needCPUs(t, warm, 2)
	if err := warm.Close(); err != nil {
		t.Fatal(err)
	}
	threads, files := threadCount(t), openFiles(t)
	s := openTest(t, Options{Engine: engineName, KeepStacks: true}, engine.Hooks{})
	for _, cpu := range s.plan.Stop[:2] {
		hog := testtask.FIFOHog(t, cpu, 20*time.Second)
		unlock()
		began := time.Now()
		r, snap := s.mustTake(t)
		took := time.Since(began)
		pid := hog.Children[0].Pid
		marked, sampled := runsOn(snap, pid, cpu), wantSampled(t, snap, pid, cpu)
		for n := 0; n < 4 && !(marked && sampled); n++ { // real-time throttling takes even a hog off its CPU, 50 ms in each second
			_, again := s.mustTake(t)
			marked, sampled = marked || runsOn(again, pid, cpu), sampled || wantSampled(t, again, pid, cpu)
		}
		if unlock, err = LockMachine(t.Context(), testneed.Patience); err != nil {
			t.Fatal(err)
		}
		hog.Close()
		if !slices.Contains(r.CPUs.Missing, cpu) || !hasWarning(r, "cpu_missed") || hasWarning(r, "worker_moved") {
			t.Errorf("CPU %d is hogged: missing %v, warnings %v", cpu, r.CPUs.Missing, r.Warnings)
		}
		if took > 15*time.Second { // the hog lives for 20 s
			t.Errorf("CPU %d is hogged: the capture took %v", cpu, took)
		}
		if len(snap.Tasks) < 10 || r.Whole() {
			t.Errorf("CPU %d is hogged: %d tasks, whole %v", cpu, len(snap.Tasks), r.Whole())
		}
		if !marked || !sampled {
			t.Errorf("the hog %d of CPU %d is marked as running %v, has a sample in user mode %v", pid, cpu, marked, sampled)
		}
	}
	unlock()
	var r *Result
	for range 5 { // a shared machine may be late on its own
		if r, _ = s.mustTake(t); r.Whole() {
			break
		}
	}
	if !r.Whole() {
		t.Errorf("the hogs are gone and CPUs %v are still missing", r.CPUs.Missing)
	}
	cpu := s.plan.Stop[1]
	var rest stop.Flight // a test that waits behind the hog would prove nothing
	var kept unix.CPUSet
	kept.Set(cpu)
	rest.Flee(&kept)
	defer rest.ComeBack()
	if unlock, err = LockMachine(t.Context(), testneed.Patience); err != nil {
		t.Fatal(err)
	}
	hog := testtask.FIFOHog(t, cpu, 30*time.Second)
	unlock()
	began := time.Now()
	for range 2 {
		if r, snap := s.mustTake(t); !slices.Contains(r.CPUs.Missing, cpu) || len(snap.Tasks) < 10 {
			t.Errorf("CPU %d is hogged: missing %v, %d tasks", cpu, r.CPUs.Missing, len(snap.Tasks))
		}
	}
	taken := time.Since(began)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	took := time.Since(began)
	hog.Close()
	if took > 28*time.Second || took-taken > 15*time.Second { // the hog lives for 30 s
		t.Errorf("beside a hog two captures took %v, Close %v", taken, took-taken)
	}
	if after := threadCount(t); after > threads+8 {
		t.Errorf("%d threads before, %d after", threads, after)
	}
	if after := openFiles(t); after > files {
		t.Errorf("%d open files before, %d after", files, after)
	}
}

func runsOn(s *kcdata.Snapshot, pid, cpu int) bool {
	for _, task := range s.Tasks {
		for _, th := range task.Threads {
			if task.ID == uint64(pid) && int(th.Linux.CPU) == cpu && th.Linux.OnCPU != 0 {
				return true
			}
		}
	}
	return false
}

func threadCount(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// Captures while processes and threads come and go, large ones in parts: no error, nothing lost
// that was there all the time. 60 s, in short 3 s, and ten captures.
func TestSpawnExitStorm(t *testing.T) {
	testneed.Lab(t, testneed.Scheduler)
	testneed.Slow(t)
	requireBPF(t)
	stay := testtask.Start(t, testtask.Bystanders(20), testtask.ManyThreads(200))
	storm := testtask.SpawnExitStorm(t, testtask.Storm{})
	forEngines(t, func(t *testing.T, engineName string) {
		s := openTest(t, Options{Engine: engineName}, engine.Hooks{})
		if e, is := s.engine.(*trap.Engine); is {
			e.Split = 16
		}
		takes, broken := 0, 0
		for end := time.Now().Add(testneed.Length(3*time.Second, 60*time.Second)); time.Now().Before(end) || takes < 10; takes++ {
			r, snap, _ := captureOnce(t, s, Request{})
			if len(r.LeftOut) > 0 {
				t.Errorf("capture %d: left out %v", takes, r.LeftOut)
			}
			if r.StopBroken > 0 { // engine pull takes kernel mutexes in the window
				broken++
				if engineName == EngineTrap || !hasWarning(r, "stop_broken") {
					t.Errorf("capture %d: broken %d times, warnings %v", takes, r.StopBroken, r.Warnings)
				}
			}
			times := map[uint64]int{}
			for _, task := range snap.Tasks {
				times[task.ID]++
			}
			for _, c := range stay.Children {
				if times[uint64(c.Pid)] != 1 {
					t.Errorf("capture %d: task %d is in the file %d times", takes, c.Pid, times[uint64(c.Pid)])
				}
			}
			time.Sleep(10 * time.Millisecond)
		}
		if made, _ := storm.Made(); made < 20 {
			t.Errorf("%d captures over %d made tasks: no storm", takes, made)
		}
		if broken > 1+takes/20 {
			t.Errorf("the stop was broken in %d of %d captures", broken, takes)
		}
	})
}
