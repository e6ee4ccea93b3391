//go:build linux && (amd64 || arm64)

package testtask

import (
	"cmp"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/testneed"
)

// MaxHogLife bounds the life of a hog: on a small machine everything else,
// the kernel's own threads included, waits behind it.
const MaxHogLife = 30 * time.Second

// FIFOHog takes one CPU with SCHED_FIFO priority 99 for at most life, then
// ends by itself; a CPU-time limit of the kernel backs its own clock. When it
// returns the hog is on its CPU, or has been already. A Go program that has
// threads on that CPU can be stuck for as long as the hog lives: keep life to a
// second or two.
func FIFOHog(tb testing.TB, cpu int, life time.Duration) *Fixture {
	tb.Helper()
	return startHogs(tb, Kind{Name: fifoHog.Name, N: 1, CPU: cpu, Life: life})
}

// FIFOHogAt is FIFOHog with another priority.
func FIFOHogAt(tb testing.TB, cpu int, priority int32, life time.Duration) *Fixture {
	tb.Helper()
	return startHogs(tb, Kind{Name: fifoHog.Name, N: 1, CPU: cpu, Life: life, Priority: priority})
}

// FIFOCallHog is FIFOHog in a loop of system calls: reads of /dev/zero. Its end
// is the kernel's limit alone.
func FIFOCallHog(tb testing.TB, cpu int, life time.Duration) *Fixture {
	tb.Helper()
	return startHogs(tb, Kind{Name: fifoCallHog.Name, N: 1, CPU: cpu, Life: life})
}

// CPUHogs pins n spinners of SCHED_OTHER to one CPU. They end at the test's
// cleanup, and after MaxHogLife at the latest.
func CPUHogs(tb testing.TB, cpu, n int) *Fixture {
	tb.Helper()
	return startHogs(tb, Kind{Name: cpuHogs.Name, N: n, CPU: cpu, Life: MaxHogLife})
}

func startHogs(tb testing.TB, k Kind) *Fixture {
	tb.Helper()
	testneed.OnlyLab(tb, "a hog")
	if k.Life <= 0 || k.Life > MaxHogLife || k.CPU < 0 || k.CPU >= 1024 || k.N < 1 {
		tb.Fatalf("testtask: %d hogs on CPU %d for %v: out of range (life up to %v, CPU below 1024)", k.N, k.CPU, k.Life, MaxHogLife)
	}
	return Start(tb, k)
}

// hostile is what hogs and storms run.
func (s *stage) hostile() ([]step, error) {
	if s.kind.Name == exitStorm.Name {
		return s.stormSteps()
	}
	set := new(unix.CPUSet)
	set.Set(s.kind.CPU)
	pin := step{nr: unix.SYS_SCHED_SETAFFINITY, arg: args{0, unix.SizeofPtr * uintptr(len(set)), addr(&set[0])}, must: true}
	spin := step{nr: opSpinFor, arg: args{uintptr(s.kind.Life)}}
	if s.kind.Name == cpuHogs.Name {
		return []step{pin, spin}, nil
	}
	us := uint64(s.kind.Life / time.Microsecond)
	if s.kind.Name == fifoCallHog.Name {
		zeros, err := s.readZeros()
		if err != nil {
			return nil, err
		}
		spin = zeros
	} else {
		us += hogRTTimeSlackUs
	}
	limit := &unix.Rlimit{Cur: us, Max: us}
	prio := new(int32)
	*prio = cmp.Or(s.kind.Priority, 99)
	// The policy before the CPU, or another hog there keeps this one from the
	// second call. And only when the stage is gone from that CPU.
	return []step{s.start(),
		{nr: unix.SYS_PRLIMIT64, arg: args{0, unix.RLIMIT_RTTIME, addr(limit)}, must: true},
		{nr: unix.SYS_SCHED_SETSCHEDULER, arg: args{0, unix.SCHED_FIFO, addr(prio)}, must: true},
		pin, spin}, nil
}
