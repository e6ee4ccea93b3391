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
