package snapshot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"stackshot/internal/capture"
	"stackshot/internal/engine"
	"stackshot/internal/engine/stop"
	"stackshot/internal/engine/trap"
	"stackshot/internal/procfs"
	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
	"stackshot/kcdata"
)

// holdSlack is what reading the clock twice, and one turn of the wait, may take
// on a CPU that a busy host takes away now and then.
var holdSlack = slow(100 * time.Microsecond)

// A delay of 0, ½, 1 and 2 hold budgets of each CPU between the decision and its
// interrupts off: no CPU holds its own off for longer than the budget without
// all the others. A stop that ends so is said, and the next try is made.
func TestTrapHoldDelays(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	testneed.Slow(t)
	requireBPF(t)
	requireTwoCPUs(t)
	slow, delay, calls := 0, time.Duration(0), 0
	s := openTest(t, Options{Engine: EngineTrap, ArrivalBudget: time.Second, MaxPause: time.Second}, lateHold(func(cpu int) time.Duration {
		if calls++; cpu != slow || calls > len(stop.CpusOnline()) { // the first try only
			return 0
		}
		return delay
	}))
	e := s.engine.(*trap.Engine)
	for _, slow = range s.plan.Stop {
		for _, halves := range []int{0, 1, 2, 4} {
			delay = trap.HoldBudget * time.Duration(halves) / 2
			calls = 0
			alone := aloneAfter(e, t, s)
			for range 4 { // the host may take a CPU away
				if alone <= trap.HoldBudget+holdSlack {
					break
				}
				calls = 0
				alone = aloneAfter(e, t, s)
			}
			if alone > trap.HoldBudget+holdSlack {
				t.Errorf("CPU %d late by %v: another held interrupts off alone for %v", slow, delay, alone)
			}
			despiteTheHost(t, func() error {
				calls = 0
				r, snap, err := s.takeParsed()
				switch {
				case err != nil:
					return fmt.Errorf("CPU %d late by %v: %w", slow, delay, err)
				case delay > trap.HoldBudget && (r.Tries < 2 || !hasWarning(r, "stop_aborted") || !hasCode(snap, "stop_aborted")):
					return fmt.Errorf("CPU %d late by %v: %d tries, warnings %v", slow, delay, r.Tries, r.Warnings)
				case !r.Whole() || len(snap.Tasks) < 10:
					return fmt.Errorf("CPU %d late by %v: missing %v, %d tasks", slow, delay, r.CPUs.Missing, len(snap.Tasks))
				}
				return nil
			})
		}
	}
}

// aloneAfter makes one try, and tells the longest that a CPU was without
// interrupts and without all the other committed ones.
func aloneAfter(e *trap.Engine, t *testing.T, s *Session) (longest time.Duration) {
	t.Helper()
	_, err := oneTry(e, t, s)
	if err != nil && !errors.Is(err, engine.ErrNotStopped) {
		t.Fatal(err)
	}
	for _, k := range e.Loaded.Workers {
		until := k.Left
		if k.In != 0 {
			until = k.Held
		}
		if k.Off != 0 {
			longest = max(longest, time.Duration(until-k.Off))
		}
		if (k.In != 0) != (err == nil) {
			t.Errorf("try: %v, and one CPU was in its window: %v", err, k.In != 0)
		}
	}
	return longest
}

// oneTry is a try of the whole machine and no more.
func oneTry(e *trap.Engine, t *testing.T, s *Session) (*capture.Raw, error) {
	t.Helper()
	sc, err := s.scope(Request{})
	if err != nil {
		t.Fatal(err)
	}
	unlock, err := LockMachine(t.Context(), testneed.Patience)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	return e.Capture(t.Context(), engine.Job{Pids: sc.pids, Size: s.firstSize(sc), Pause: s.options.MaxPause})
}

func hasCode(snap *kcdata.Snapshot, code string) bool {
	return slices.ContainsFunc(snap.Warnings, func(w kcdata.Warning) bool { return w.Code == code })
}

// lateButTheFirst keeps every CPU but CPU 0 from holding still in time.
func lateButTheFirst(cpu int) time.Duration {
	return time.Duration(flagInt(cpu != 0)) * 3 * trap.HoldBudget
}

// CPUs that are late to each try: the tries are few, and the error says who.
func TestTrapThatCannotHold(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	testneed.Slow(t)
	requireBPF(t)
	requireTwoCPUs(t)
	s := openTest(t, Options{Engine: EngineTrap}, lateHold(lateButTheFirst))
	var err error
	for range 5 {
		var res *Result
		if res, err = s.Take(t.Context(), Request{}); err != nil || len(res.CPUs.Missing) == 0 {
			break // a CPU that did not come to the stop holds nobody up
		}
	}
	var not *engine.NotStopped
	if !errors.As(err, &not) || not.Held <= 0 {
		t.Errorf("%v, want that nothing was stopped and what it took", err)
	}
	if err != nil && !strings.Contains(err.Error(), "CPU") {
		t.Errorf("%v: names no CPU", err)
	}
}

// Then auto holds the machine the other way, by its threads, and says why.
func TestTrapThatCannotHoldStepsDown(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	testneed.Slow(t)
	requireTwoCPUs(t)
	requireTrap(t)
	room := max(defaultMaxPause, 20*trap.HoldBudget) // for all tries in vain
	s := openTest(t, Options{Engine: EngineAuto, MaxPause: room}, lateHold(lateButTheFirst))
	for range 2 {
		r, snap, _ := captureWhole(t, s, Request{})
		if r.Engine != EnginePull || r.Isolation != IsolationFIFO || !hasWarning(r, "engine_pull") || !hasWarning(r, "stop_aborted") {
			t.Errorf("engine %s, isolation %s, warnings %+v", r.Engine, r.Isolation, r.Warnings)
		}
		if r.Tries <= maxTries || len(snap.Tries) != r.Tries || snap.Tries[0].Outcome != kcdata.TryNotStopped || snap.Tries[r.Tries-1].Outcome != kcdata.TryWhole {
			t.Errorf("%d tries: %+v", r.Tries, snap.Tries)
		}
	}
}

// And where the kernel refuses that way, too, it stops nothing, and gives both reasons.
func TestTrapThatCannotHoldWithoutPull(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	testneed.Slow(t)
	requireTwoCPUs(t)
	requireTrap(t)
	h := lateHold(lateButTheFirst)
	h.Specs = pullRefused{h.Specs, "record_task"}
	s := openTest(t, Options{Engine: EngineAuto, MaxPause: max(defaultMaxPause, 20*trap.HoldBudget)}, h)
	for range 2 {
		r, _, _ := captureOnce(t, s, Request{})
		if why := textOf(r.Warnings, "engine_procfs"); r.Engine != EngineProcfs || !strings.Contains(why, "not stopped") || !strings.Contains(why, "engine pull: ") || !strings.Contains(why, "record_task") {
			t.Errorf("engine %s, warnings %+v", r.Engine, r.Warnings)
		}
	}
}

// 4,000 threads and 200 µs: the pause is kept, and what is recorded and what is
// left out are together every task there is.
func TestTinyPause(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	testneed.Slow(t)
	forEngines(t, tinyPause)
}

func tinyPause(t *testing.T, engineName string) {
	pause := 200 * time.Microsecond
	// Beyond the budget: the record of one thread under way, the way out of the
	// kernel and back, and the interrupts that came meanwhile.
	slack := slow(200 * time.Microsecond)
	if engineName == EnginePull { // a task under way, and real-time threads that wake
		pause, slack = 500*time.Microsecond, 5*time.Millisecond
	}
	testtask.Start(t, testtask.Bystanders(300), testtask.ManyThreads(3700))
	s := session(t, Options{Engine: engineName, MaxPause: pause, Latency: LatencyOff})
	kept, cut, taken := 0, 0, 0
	for range 60 {
		before, _ := s.machine.Tasks()
		var file bytes.Buffer
		r, err := s.Take(context.Background(), Request{Output: &file})
		if errors.Is(err, engine.ErrNotStopped) {
			continue // nobody came within 200 µs: said in the error
		}
		if err != nil {
			t.Fatal(err)
		}
		taken++
		snap, err := parse(t, file.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		if r.Stopped <= pause+slack {
			kept++
		}
		if len(r.LeftOut) > 0 {
			cut++
		}
		if len(snap.LeftOut) != len(r.LeftOut) || len(r.LeftOut) > 0 && r.Whole() {
			t.Errorf("left out %d, in the file %d, whole %v", len(r.LeftOut), len(snap.LeftOut), r.Whole())
		}
		for _, l := range snap.LeftOut {
			if l.Reason != kcdata.LeftOutMaxPause {
				t.Errorf("left out for another reason: %+v", l)
			}
		}
		wantCensus(t, before, snap)
		if kept >= 10 && cut >= 10 {
			break
		}
	}
	t.Logf("of %d captures %d were stopped for at most %v, %d left tasks out", taken, kept, pause+slack, cut)
	if taken == 0 || 2*kept < taken || cut == 0 {
		t.Errorf("of %d captures %d kept the pause of %v, %d left tasks out", taken, kept, pause, cut)
	}
}

// wantCensus: each task that lives before and after is recorded or named as left
// out, and not both.
func wantCensus(t *testing.T, before []int, snap *kcdata.Snapshot) {
	t.Helper()
	in := tasksByID(snap)
	out := map[int]bool{}
	for _, l := range snap.LeftOut {
		out[int(l.Tgid)] = true
		if l.Tgid != 0 && in[uint64(l.Tgid)] != nil {
			t.Errorf("task %d is in the file and left out", l.Tgid)
		}
	}
	after, err := procfs.FS{}.Tasks()
	if err != nil {
		t.Fatal(err)
	}
	for _, tgid := range before {
		_, err := procfs.FS{}.Stat(tgid)
		if err != nil || !slices.Contains(after, tgid) {
			continue
		}
		if in[uint64(tgid)] == nil && !out[tgid] {
			t.Errorf("task %d is neither in the file nor left out", tgid)
		}
	}
}

// A CPU that goes offline between Open and Take is no CPU that did not come:
// the file says what it is; and one that comes online is said to have run on.
func TestTrapCPUGoesOffline(t *testing.T) {
	testneed.Lab(t, testneed.Scheduler)
	testneed.Slow(t)
	requireBPF(t)
	requireTwoCPUs(t)
	s, _ := trapSession(t, Options{})
	captureOnce(t, s, Request{})
	cpu := s.plan.Stop[len(s.plan.Stop)-1]
	online := setOffline(t, cpu)
	r, snap := takeLocked(t, s)
	if slices.Contains(r.CPUs.Online, cpu) || slices.Contains(r.CPUs.Missing, cpu) || !hasCode(snap, "cpu_offline") {
		t.Errorf("CPU %d is offline: %+v, %v", cpu, r.CPUs, r.Warnings)
	}
	if len(r.CPUs.Stopped) != len(s.plan.Stop)-1 || len(snap.Tasks) < 10 {
		t.Errorf("CPU %d is offline: stopped %v, %d tasks", cpu, r.CPUs.Stopped, len(snap.Tasks))
	}
	late := openTest(t, Options{Engine: EngineTrap}, engine.Hooks{})
	online()
	r, snap = takeLocked(t, late)
	if !slices.Contains(r.CPUs.Left, cpu) || !hasCode(snap, "cpu_online") {
		t.Errorf("CPU %d came online after Open: %+v, %v", cpu, r.CPUs, r.Warnings)
	}
	if r, _ := takeLocked(t, s); len(r.CPUs.Stopped) != len(s.plan.Stop) {
		t.Errorf("CPU %d is online again: %+v", cpu, r.CPUs)
	}
}

// takeLocked is a capture under the lock that the test holds, repeated until just
// these CPUs are missing: a shared machine may be late on its own.
func takeLocked(t *testing.T, s *Session, missing ...int) (*Result, *kcdata.Snapshot) {
	t.Helper()
	sc, err := s.scope(Request{})
	if err != nil {
		t.Fatal(err)
	}
	for n := 0; ; n++ {
		c, err := s.engine.Capture(t.Context(), engine.Job{Pids: sc.pids, Size: s.firstSize(sc), Pause: s.options.MaxPause})
		if errors.Is(err, engine.ErrNotStopped) && n < 100 {
			time.Sleep(100 * time.Millisecond)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		c.Capture.Tries = 1
		var file bytes.Buffer
		s.complete(c, sc)
		r, err := s.collate(&file, c)
		if err != nil {
			t.Fatal(err)
		}
		snap, err := parse(t, file.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		if slices.Equal(r.CPUs.Missing, missing) || n >= 100 {
			return r, snap
		}
	}
}

// setOffline takes a CPU away until the test's end, or until online is called,
// and holds the machine's lock meanwhile. The CPU comes back also when this
// process is killed.
func setOffline(t *testing.T, cpu int) (online func()) {
	t.Helper()
	testneed.OnlyLab(t, "a CPU that goes offline")
	// In a cpuset of the first kind a CPU that goes does not come back.
	if sets, _ := filepath.Glob("/sys/fs/cgroup/cpuset/*/cpuset.cpus"); len(sets) > 0 {
		t.Skipf("%s would lose CPU %d for good (cgroup v1)", sets[0], cpu)
	}
	path := fmt.Sprintf("/sys/devices/system/cpu/cpu%d/online", cpu)
	unlock, err := LockMachine(t.Context(), testneed.Patience)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(unlock)
	guard, err := testtask.NewGuard(path, "1")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("0"), 0); err != nil {
		guard.Restore()
		t.Skipf("this machine's CPU %d stays online: %v", cpu, err)
	}
	online = func() {
		if err := guard.Restore(); err != nil {
			t.Errorf("CPU %d stays offline: %v", cpu, err)
		}
	}
	t.Cleanup(online)
	return online
}
