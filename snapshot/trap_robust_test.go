package snapshot

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/clock"
	"stackshot/internal/engine"
	"stackshot/internal/engine/trap"
	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
)

// A delay of 0, ½, 1 and 2 arrival budgets, in short of ½ and 2, at the arrival of each CPU in turn:
// nobody holds interrupts off for long without the others, and every stop that
// is made is of those who came.
func TestTrapArrivalDelays(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	testneed.Slow(t)
	requireTrap(t)
	requireTwoCPUs(t)
	const enough = 500 * time.Millisecond // the delays are multiples of it
	budget, pause := min(slow(4*time.Millisecond), enough), slow(30*time.Millisecond)
	for _, slow := range []int{0, 1} {
		for _, delay := range testneed.Length([]time.Duration{budget / 2, 2 * budget}, []time.Duration{0, budget / 2, budget, 2 * budget}) {
			despiteTheHost(t, func() error { return arriveLate(t, slow, delay, budget, pause) })
		}
	}
}

// arriveLate makes one capture to which a CPU comes late.
func arriveLate(t *testing.T, slow int, delay, budget, pause time.Duration) error {
	s := hooked(t, Options{Engine: EngineTrap, ArrivalBudget: budget, MaxPause: pause},
		engine.Hooks{BeforeArrival: func(cpu int) {
			for by := clock.Nanotime() + int64(delay); cpu == slow && clock.Nanotime() < by; {
			}
		}})
	defer s.Close()
	e := s.engine.(*trap.Engine)
	res, err := s.Take(t.Context(), Request{})
	var held []int64
	for _, k := range e.Loaded.Workers {
		if k.Held != 0 {
			held = append(held, int64(k.Held))
		}
		if k.In != 0 && int64(k.Left-k.Held) > int64(pause) {
			return fmt.Errorf("slow CPU %d by %v: held for %d ns", slow, delay, k.Left-k.Held)
		}
	}
	if len(held) == 2 && max(held[0]-held[1], held[1]-held[0]) > int64(trap.HoldBudget) {
		return fmt.Errorf("slow CPU %d by %v: held from %v, more than %v apart", slow, delay, held, trap.HoldBudget)
	}
	switch {
	case err != nil && !(slow == s.plan.Main && delay >= budget):
		return fmt.Errorf("slow CPU %d by %v: %w", slow, delay, err)
	case err == nil && delay == 2*budget && len(res.CPUs.Missing) == 0:
		return fmt.Errorf("slow CPU %d by %v: nobody missed", slow, delay)
	case err == nil && delay < budget && len(res.CPUs.Missing) != 0:
		return fmt.Errorf("slow CPU %d by %v: missing %v", slow, delay, res.CPUs.Missing)
	}
	return nil
}

// A CPU kept for good by somebody's FIFO-99 task: the others are recorded and
// it is named.
func TestTrapGoesOnWithoutAHoggedCPU(t *testing.T) {
	testneed.Lab(t, testneed.Scheduler)
	testneed.Slow(t)
	requireBPF(t)
	requireTwoCPUs(t)
	s, _ := trapSession(t, Options{})
	unlock, err := LockMachine(t.Context(), testneed.Patience) // nobody else's capture meets the hog
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	life := min(slow(10*time.Second), 25*time.Second)
	for _, cpu := range s.plan.Stop[:2] {
		hog := testtask.FIFOHog(t, cpu, life)
		began := time.Now()
		res, snap := takeLocked(t, s, cpu)
		took := time.Since(began)
		hog.Close()
		// Some other test's thread may have waited behind the hog for all its life.
		if took < life && !slices.Equal(res.CPUs.Missing, []int{cpu}) || len(snap.Tasks) < 10 || took > life+10*time.Second {
			t.Errorf("CPU %d is hogged: missing %v, %d tasks, in %v", cpu, res.CPUs.Missing, len(snap.Tasks), took)
		}
	}
	takeLocked(t, s)
}

// Tasks and threads that come and go all the while, large ones in parts: none
// is twice in a file, none that stays is missing, no file contradicts itself.
func TestTrapInASpawnExitStorm(t *testing.T) {
	testneed.Lab(t, testneed.Scheduler)
	testneed.Slow(t)
	requireBPF(t)
	stay := testtask.Start(t, testtask.Bystanders(20), testtask.ManyThreads(200))
	testtask.SpawnExitStorm(t, testtask.Storm{})
	s, e := trapSession(t, Options{})
	e.Split = 16
	for range testneed.Length(15, 60) {
		res, snap, _ := captureOnce(t, s, Request{})
		if len(res.LeftOut) > 0 || res.StopBroken > 0 {
			t.Errorf("left out %v, broken %d times", res.LeftOut, res.StopBroken)
		}
		times := map[uint64]int{}
		for _, task := range snap.Tasks {
			times[task.ID]++
		}
		for _, c := range stay.Children {
			if times[uint64(c.Pid)] != 1 {
				t.Errorf("task %d is in the file %d times", c.Pid, times[uint64(c.Pid)])
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func openFiles(tb testing.TB) int {
	tb.Helper()
	n := 0
	for fd := range 4096 {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil {
			n++
		}
	}
	return n
}
