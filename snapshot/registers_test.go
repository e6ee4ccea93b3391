package snapshot

import (
	"runtime"
	"testing"

	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
)

// The saved registers hold the instruction and stack pointers that the system
// call record has, at the places the format says; kernel threads have none.
func TestUserRegisters(t *testing.T) {
	testneed.Live(t)
	requireBPF(t)
	f := testtask.Start(t, testtask.ManyThreads(5))
	_, snap, _ := take(t, Options{Engine: EnginePull}, Request{Pids: []int{f.Children[0].Pid, 2}})
	count, ip, sp := 21, 16, 19
	if runtime.GOARCH == "arm64" {
		count, ip, sp = 34, 32, 31
	}
	seen := 0
	for _, task := range snap.Tasks {
		for _, th := range task.Threads {
			if (th.Registers != nil) != (th.Syscall != nil) || task.IsKernel() && th.Registers != nil {
				t.Errorf("thread %d: %d registers, system call %v", th.ID, len(th.Registers), th.Syscall)
			}
			if th.Registers == nil {
				continue
			}
			seen++
			if len(th.Registers) != count {
				t.Fatalf("thread %d: %d registers, want %d", th.ID, len(th.Registers), count)
			}
			if th.Registers[ip] != th.Syscall.IP || th.Registers[sp] != th.Syscall.SP || th.Syscall.IP == 0 {
				t.Errorf("thread %d: registers %x, system call %+v", th.ID, th.Registers, *th.Syscall)
			}
		}
	}
	if seen != 5 {
		t.Errorf("%d threads with registers, want 5", seen)
	}
}
