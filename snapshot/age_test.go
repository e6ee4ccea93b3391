package snapshot

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/clock"
	"stackshot/internal/engine"
	"stackshot/internal/model"
	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
)

// The last CPU of a sleeper does not come to the stop: it is said how long the
// sleeper has slept all the same, about, and so of nearly all sleepers there.
func TestAgesWhereACPUIsMissed(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	testneed.Slow(t)
	requireBPF(t)
	requireTwoCPUs(t)
	for _, engineName := range []string{EngineTrap, EnginePull} {
		wantAwaited(t, engineName)
	}
	budget := slow(20 * time.Millisecond)
	for _, engineName := range []string{EngineTrap, EnginePull} {
		late := -1
		s := openTest(t, Options{Engine: engineName, ArrivalBudget: budget, MaxPause: 10 * budget},
			engine.Hooks{BeforeArrival: func(cpu int) {
				for by := clock.Nanotime() + int64(2*budget); cpu == late && clock.Nanotime() < by; {
				}
			}})
		needCPUs(t, s, 2)
		if late = s.plan.Stop[0]; late == s.plan.Main {
			late = s.plan.Stop[1]
		}
		started := time.Now()
		pid, asleep := sleeperOn(t, late)
		time.Sleep(300 * time.Millisecond)
		least := time.Since(asleep)
		res, snap := s.mustTake(t)
		most := time.Since(started)
		if len(res.CPUs.Missing) != 1 || res.CPUs.Missing[0] != late {
			t.Fatalf("%s: missing %v, want %d", engineName, res.CPUs.Missing, late)
		}
		clock := model.NewClock(snap)
		const tick = 10 * time.Millisecond
		age := clock.Age(threadsByID(snap)[uint64(pid)], model.SinceSwitch)
		if d := time.Duration(age.Ns); !age.Known || !age.About || d < least-2*tick || d > most+2*tick {
			t.Errorf("%s: asleep for %v, about %v, known %v; it was for %v to %v", engineName, d, age.About, age.Known, least, most)
		}
		there, unknown := 0, 0
		for _, th := range threadsByID(snap) {
			if int(th.Linux.CPU) != late || model.StateOf(th).Since != model.SinceSwitch || th.IsSelf() {
				continue
			}
			there++
			if !clock.Age(th, model.SinceSwitch).Known {
				unknown++
			}
		}
		t.Logf("%s: of %d sleepers on CPU %d the age of %d is not known", engineName, there, late, unknown)
		if there == 0 || unknown > there/4 {
			t.Errorf("%s: of %d sleepers on CPU %d the age of %d is not known", engineName, there, late, unknown)
		}
	}
}

// wantAwaited: a CPU that is late by three quarters of the budget is missed by nobody.
func wantAwaited(t *testing.T, engineName string) {
	t.Helper()
	const budget = 2 * time.Second
	late := -1
	s := openTest(t, Options{Engine: engineName, ArrivalBudget: budget, MaxPause: 2 * budget},
		engine.Hooks{BeforeArrival: func(cpu int) {
			for by := clock.Nanotime() + int64(budget*3/4); cpu == late && clock.Nanotime() < by; {
			}
		}})
	needCPUs(t, s, 2)
	if late = s.plan.Stop[0]; late == s.plan.Main {
		late = s.plan.Stop[1]
	}
	var err error
	for range 3 { // the host may take a CPU
		var res *Result
		if res, _, err = s.takeParsed(); err == nil && len(res.CPUs.Missing) == 0 {
			return
		} else if err == nil {
			err = fmt.Errorf("missing %v", res.CPUs.Missing)
		}
	}
	t.Errorf("%s: CPU %d is late by 3/4 of the budget: %v", engineName, late, err)
}

// sleeperOn starts a process that sleeps on a CPU, and says when it slept for sure.
func sleeperOn(t *testing.T, cpu int) (pid int, asleep time.Time) {
	t.Helper()
	var before unix.CPUSet
	runtime.LockOSThread() // whose CPUs a child inherits
	defer runtime.UnlockOSThread()
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		t.Fatal(err)
	}
	pinHere(t, cpu)
	pid = testtask.Start(t, testtask.Sleeping).Children[0].Pid
	asleep = time.Now()
	if err := unix.SchedSetaffinity(0, &before); err != nil {
		t.Fatal(err)
	}
	return pid, asleep
}
