//go:build linux && (amd64 || arm64)

package testtask

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/testneed"
	"stackshot/snapshot"
)

// lastCPU is the last this process may use.
func lastCPU(t *testing.T) int {
	t.Helper()
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		t.Fatal(err)
	}
	for cpu := 1023; cpu >= 0; cpu-- {
		if set.IsSet(cpu) {
			return cpu
		}
	}
	t.Fatal("no CPU allowed")
	return 0
}

// statField gives a field of /proc/PID/stat, numbered as in proc(5).
func statField(t *testing.T, pid, n int) int {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	v, err := strconv.Atoi(f[n-3])
	if err != nil {
		t.Fatal(err)
	}
	return v
}

const (
	fieldUtime     = 14
	fieldProcessor = 39
	fieldPriority  = 40
	fieldPolicy    = 41
)

// holdMachine keeps captures of other packages away while a CPU is hogged.
func holdMachine(t *testing.T) {
	t.Helper()
	unlock, err := snapshot.LockMachine(t.Context(), testneed.Patience)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(unlock)
}

func TestI5FIFOHogEndsByItself(t *testing.T) {
	testneed.Lab(t, testneed.Scheduler)
	holdMachine(t)
	cpu, life := lastCPU(t), 300*time.Millisecond
	begin := time.Now()
	f := FIFOHog(t, cpu, life)
	c := &f.Children[0]
	if policy, prio := statField(t, c.Pid, fieldPolicy), statField(t, c.Pid, fieldPriority); policy != unix.SCHED_FIFO || prio != 99 {
		t.Errorf("policy %d, priority %d, want SCHED_FIFO 99", policy, prio)
	}
	if err := WaitFor(life+5*time.Second, c.ended); err != nil {
		t.Fatalf("hog of %v: %v", life, err)
	}
	if took := time.Since(begin); took < life {
		t.Errorf("hog of %v ended after %v", life, took)
	}
	if got := statField(t, c.Pid, fieldProcessor); got != cpu {
		t.Errorf("hog ended on CPU %d, want %d", got, cpu)
	}
	if ticks := statField(t, c.Pid, fieldUtime); ticks < 5 {
		t.Errorf("hog of %v used only %d ticks of user time", life, ticks)
	}
}

// The one in system calls is on its CPU, in the kernel's time, and is ended by
// the kernel's limit.
func TestI5FIFOCallHogIsEnded(t *testing.T) {
	testneed.Lab(t, testneed.Scheduler)
	holdMachine(t)
	cpu, life := lastCPU(t), 300*time.Millisecond
	c := &FIFOCallHog(t, cpu, life).Children[0]
	if err := WaitFor(life+5*time.Second, c.ended); err != nil {
		t.Fatalf("hog of %v: %v", life, err)
	}
	if user, system := statField(t, c.Pid, fieldUtime), statField(t, c.Pid, fieldUtime+1); system < 5 || 2*system < user { // a call takes no longer than the way to it on some hosts
		t.Errorf("hog of %v used %d ticks of user time and %d of system time", life, user, system)
	}
	if policy, on := statField(t, c.Pid, fieldPolicy), statField(t, c.Pid, fieldProcessor); policy != unix.SCHED_FIFO || on != cpu {
		t.Errorf("policy %d on CPU %d, want SCHED_FIFO on %d", policy, on, cpu)
	}
}

// On a busy machine a hog is gone before anybody has looked at it.
func TestHogGoneBeforeItIsSeen(t *testing.T) {
	testneed.Lab(t, testneed.Scheduler)
	holdMachine(t)
	cpu := lastCPU(t)
	for _, start := range []func(testing.TB, int, time.Duration) *Fixture{FIFOHog, FIFOCallHog} {
		c := &start(t, cpu, time.Millisecond).Children[0]
		if err := WaitFor(5*time.Second, c.ended); err != nil {
			t.Errorf("%v: %v", c, err)
		}
	}
}

func TestCPUHogsShareOneCPU(t *testing.T) {
	testneed.Lab(t, testneed.Scheduler)
	holdMachine(t)
	cpu := lastCPU(t)
	f := CPUHogs(t, cpu, 3)
	time.Sleep(200 * time.Millisecond)
	for i := range f.Children {
		c := &f.Children[i]
		if got := statField(t, c.Pid, fieldProcessor); got != cpu {
			t.Errorf("%v on CPU %d, want %d", c, got, cpu)
		}
		if st, err := readStat(fmt.Sprintf("/proc/%d", c.Pid)); err != nil || st.state != 'R' {
			t.Errorf("%v: %+v, %v, want state R", c, st, err)
		}
	}
}

func TestStormMakesAndStops(t *testing.T) {
	testneed.Lab(t, testneed.Scheduler)
	f := SpawnExitStorm(t, Storm{Threads: 3})
	var procs, threads uint64
	err := WaitFor(10*time.Second, func() (bool, error) {
		procs, threads = f.Made()
		return procs >= 50, nil
	})
	if err != nil {
		t.Fatalf("%d processes and %d threads made: %v", procs, threads, err)
	}
	if threads < 3*50 {
		t.Errorf("%d threads with %d processes of 3 each", threads, procs)
	}
	workers := pids(f.Fixture)
	f.Stop()
	wantGone(t, workers)
}

// The rate is bounded by interval and life.
func TestStormRate(t *testing.T) {
	testneed.Lab(t, testneed.Scheduler)
	const interval, life, window = 20 * time.Millisecond, 5 * time.Millisecond, 300 * time.Millisecond
	f := SpawnExitStorm(t, Storm{Workers: 1, Interval: interval, Life: life})
	before, _ := f.Made()
	begin := time.Now()
	time.Sleep(window)
	after, _ := f.Made()
	most := uint64(time.Since(begin)/(interval+life)) + 2
	if got := after - before; got == 0 || got > most {
		t.Errorf("%d processes in %v, want 1 to %d", got, window, most)
	}
}
