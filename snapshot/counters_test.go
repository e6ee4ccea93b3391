package snapshot

import (
	"errors"
	"testing"
	"time"

	"stackshot/internal/engine"
	"stackshot/internal/testneed"
	"stackshot/kcdata"

	"golang.org/x/sys/unix"
)

// Where the machine has no PMU the workers have no counts, and that is all.
func TestCountersOfWorkers(t *testing.T) {
	testneed.Lab(t, testneed.Scheduler)
	s := openTest(t, Options{ArrivalBudget: time.Second}, engine.Hooks{})
	attr := unix.PerfEventAttr{Type: unix.PERF_TYPE_HARDWARE, Config: unix.PERF_COUNT_HW_CPU_CYCLES, Size: unix.PERF_ATTR_SIZE_VER1}
	fd, err := unix.PerfEventOpen(&attr, 0, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err == nil {
		unix.Close(fd)
	} else if !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.EOPNOTSUPP) && !errors.Is(err, unix.ENODEV) {
		t.Errorf("no counters: %v", err)
	}
	_, snap := s.mustTake(t)
	if len(snap.Phases) == 0 {
		t.Error("no phases")
	}
	for _, p := range snap.Phases {
		has := p.Present&kcdata.PhasesHaveCycles != 0
		if has && (err != nil || p.Cycles == 0 || p.Instrs == 0) || !has && p.Cycles+p.Instrs != 0 {
			t.Errorf("CPU %d: %d cycles, %d instructions, said to be there: %v; this thread's counter: %v", p.CPU, p.Cycles, p.Instrs, has, err)
		}
	}
}
