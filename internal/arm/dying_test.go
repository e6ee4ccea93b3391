package arm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/bpf/bpftest"
	"stackshot/internal/testvm"
	"stackshot/kcdata"
)

func write(t *testing.T, path, text string) {
	if err := os.WriteFile(path, []byte(text), 0); err != nil {
		t.Error(err)
	}
}

func sysrqC(t *testing.T, _ *Armed) { write(t, "/proc/sysrq-trigger", "c") }

func panicOnOops(t *testing.T, _ *Armed) { write(t, "/proc/sys/kernel/panic_on_oops", "1") }

// panicAtHungTasks: the crowd has tasks in state D.
func panicAtHungTasks(t *testing.T, _ *Armed) {
	write(t, "/proc/sys/kernel/hung_task_panic", "1")
	write(t, "/proc/sys/kernel/hung_task_timeout_secs", "1")
}

// pin binds this thread to a CPU.
func pin(t *testing.T, cpu int) {
	runtime.LockOSThread()
	var one unix.CPUSet
	one.Set(cpu)
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		t.Error(err)
	}
}

// pinAll binds every thread of this process: none is left on a CPU that will answer nobody.
func pinAll(t *testing.T, cpu int) {
	pin(t, cpu) // threads that are made later are made by this one, or by one that is bound
	var one unix.CPUSet
	one.Set(cpu)
	tasks, err := os.ReadDir("/proc/self/task")
	for _, task := range tasks {
		tid, aerr := strconv.Atoi(task.Name())
		err = errors.Join(err, aerr, unix.SchedSetaffinity(tid, &one))
	}
	if err != nil {
		t.Error(err)
	}
}

func spinOnCPU0(t *testing.T, _ *Armed) {
	began := make(chan bool)
	go func() {
		pin(t, 0)
		close(began)
		for n := 0; ; n++ {
			spun.Store(int64(n))
		}
	}()
	<-began
}

var spun atomic.Int64

// nmiWhen sends an NMI, which CPU 0 takes, when that CPU is idle, or busy.
func nmiWhen(idle bool) func(context.Context, *testvm.Driven, uint64) error {
	return func(ctx context.Context, g *testvm.Driven, _ uint64) error {
		for ; ctx.Err() == nil; time.Sleep(100 * time.Millisecond) {
			cpus, err := g.CPUs()
			if err != nil {
				return err
			}
			if cpus[0].Halted() == idle {
				return g.NMI()
			}
		}
		return fmt.Errorf("CPU 0 was never as wanted: %w", ctx.Err())
	}
}

// besideASpinner panics while the other CPU spins in the kernel with interrupts off: it answers nobody but an NMI.
func besideASpinner(t *testing.T, _ *Armed) {
	s, err := bpftest.NewSpinner(bpftest.SpinIRQOff)
	if err != nil { // before 6.14
		s, err = bpftest.NewSpinner(bpftest.SpinInterrupt)
	}
	if err != nil {
		t.Error(err)
		return
	}
	pinAll(t, 0)
	if err := s.Spin(10*time.Minute, 1); err != nil {
		t.Error(err)
		return
	}
	sysrqC(t, nil)
}

// eatAll takes all memory there is and has the kernel panic when there is none.
func eatAll(t *testing.T, _ *Armed) {
	write(t, "/proc/sys/vm/panic_on_oom", "2")
	for {
		if _, err := unix.Mmap(-1, 0, 4<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_LOCKED|unix.MAP_POPULATE); err != nil {
			t.Error(err)
			return
		}
	}
}

// onTwoCPUs panics on CPU 0, and while that records on CPU 1.
func onTwoCPUs(t *testing.T, a *Armed) {
	ready := make(chan bool)
	go func() {
		pin(t, 1)
		close(ready)
		for atomic.LoadUint32(&a.panic.Run.Threads) < actorCount/10 {
		}
		sysrqC(t, nil)
	}()
	<-ready
	pin(t, 0)
	sysrqC(t, nil)
}

// otherCPURuns: a thread ran on the other CPU meanwhile. It is marked, and has no stack.
func otherCPURuns(t *testing.T, s *kcdata.Snapshot) {
	n := 0
	for _, task := range s.Tasks {
		for _, th := range task.Threads {
			if th.HasLinux && th.Linux.OnCPU != 0 && th.Linux.CPU != s.Panic.CPU {
				if n++; len(th.Kernel) > 0 {
					t.Errorf("thread %d runs on CPU %d and has a stack of %d frames", th.ID, th.Linux.CPU, len(th.Kernel))
				}
			}
		}
	}
	if n != 1 {
		t.Errorf("%d threads ran on the other CPU", n)
	}
}
