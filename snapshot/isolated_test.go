package snapshot

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
	"stackshot/internal/topology"
	"stackshot/kcdata"
)

// isolatedCPU is one that the machine keeps for somebody, by the kernel's
// command line, and why.
func isolatedCPU(t *testing.T) (cpu int, why topology.Reason) {
	t.Helper()
	for _, c := range machine(t).CPUs {
		if why = c.Isolation & (topology.Isolated | topology.NohzFull); c.Online && why != 0 {
			return c.ID, why
		}
	}
	t.Skip("needs an isolated CPU (isolcpus=, nohz_full=)")
	return 0, 0
}

// callSpinner loops through system calls on one CPU.
func callSpinner(t *testing.T, cpu int) int {
	t.Helper()
	pid := testtask.Start(t, testtask.SpinSyscall).One(testtask.SpinSyscall, "").Pid
	var set unix.CPUSet
	set.Set(cpu)
	if err := unix.SchedSetaffinity(pid, &set); err != nil {
		t.Fatal(err)
	}
	return pid
}

// By default an isolated CPU runs on: the file and the report name it, and what
// runs there has the stack that a sample found it in.
func TestIsolatedCPUIsLeftRunning(t *testing.T) {
	testneed.Live(t)
	cpu, why := isolatedCPU(t)
	forEngines(t, func(t *testing.T, engine string) {
		pid := callSpinner(t, cpu)
		s := session(t, Options{Engine: engine})
		samples, inKernel := 0, 0
		const captures = 40
		for n := 0; n < captures && (samples < 5 || inKernel == 0); n++ {
			res, snap, _ := captureOnce(t, s, Request{})
			wantLeft(t, res, snap, cpu, why)
			th := sampleIn(snap, pid)
			if th == nil {
				continue // a tick did not come in time
			}
			samples++
			checkRan(t, snap, th, cpu)
			if th.Sample.User == 0 && len(th.Kernel) > 0 {
				// Inside a thunk the unwinder knows the thunk alone.
				inKernel += flagInt(has(plain(t, snap, th), "do_syscall_64", "el0_svc"))
				if th.Kernel[0] != th.Sample.IP {
					t.Errorf("sampled at %#x, stack %v", th.Sample.IP, plain(t, snap, th))
				}
			} else if len(th.User) == 0 || th.User[0] != th.Sample.IP || !executable(t, pid, th.User[0]) {
				t.Errorf("sampled at %#x, user stack %#x", th.Sample.IP, th.User)
			}
		}
		t.Logf("CPU %d (%v): %d samples, %d of them in the kernel", cpu, why, samples, inKernel)
		if samples < 5 || inKernel == 0 {
			t.Errorf("the spinner on CPU %d: %d samples, %d of them in the kernel, in %d captures", cpu, samples, inKernel, captures)
		}
	})
}

// wantLeft: the CPU is left, and no other is, and whoever reads hears of it.
func wantLeft(t *testing.T, res *Result, snap *kcdata.Snapshot, cpu int, why topology.Reason) {
	t.Helper()
	c, ok := snap.CPU(uint32(cpu))
	if !ok || c.Flags&(kcdata.CPULeft|kcdata.CPUStopped|kcdata.CPUWorked|kcdata.CPUMissed) != kcdata.CPULeft {
		t.Errorf("CPU %d: %+v", cpu, c)
	}
	if !slices.Equal(res.CPUs.Left, []int{cpu}) || slices.Contains(res.CPUs.Stopped, cpu) || len(res.CPUs.Stopped) != len(res.CPUs.Online)-1 {
		t.Errorf("CPU %d is to be left: %+v", cpu, res.CPUs)
	}
	said := kcdata.Warning{Code: "cpu_left_running", Text: fmt.Sprintf("CPU %d was left running: %v", cpu, why)}
	if !slices.Contains(snap.Warnings, said) {
		t.Errorf("no %+v in %+v", said, snap.Warnings)
	}
	report := strings.Join(strings.Fields(firstLines(t, snap)), " ")
	if want := fmt.Sprintf("CPU %d left running on purpose (isolated or nohz_full)", cpu); !strings.Contains(report, want) {
		t.Errorf("the report begins %q without %q", report, want)
	}
}

// With StopIsolate it stands like the others: nobody is asked, and the stack of
// what ran there is of the stop.
func TestIsolatedCPUIsStopped(t *testing.T) {
	testneed.Live(t)
	cpu, _ := isolatedCPU(t)
	forEngines(t, func(t *testing.T, engine string) {
		pid := callSpinner(t, cpu)
		s := session(t, Options{Engine: engine, StopIsolated: true})
		onCore, inKernel := 0, 0
		const captures = 40
		for n := 0; n < captures && (onCore < 5 || inKernel == 0); n++ {
			res, snap, _ := captureWhole(t, s, Request{})
			c, _ := snap.CPU(uint32(cpu))
			if !slices.Equal(res.CPUs.Stopped, res.CPUs.Online) || c.Flags&(kcdata.CPUStopped|kcdata.CPULeft) != kcdata.CPUStopped || hasCode(snap, "cpu_left_running") {
				t.Fatalf("CPU %d: %+v of %+v, %+v", cpu, c, res.CPUs, snap.Warnings)
			}
			th := threadsByID(snap)[uint64(pid)]
			if th == nil || th.Sample != nil || int(th.Linux.CPU) != cpu || letter(&th.Linux) != 'R' {
				t.Fatalf("the spinner %d on CPU %d: %+v", pid, cpu, th)
			}
			stack := plain(t, snap, th)
			if th.Linux.KstackErr != 0 || !wasInRead(th, stack) {
				t.Errorf("the spinner %d: %+v, call %+v, stack %v", pid, th.Linux, th.Syscall, stack)
			}
			onCore += flagInt(th.Linux.OnCPU == 1 && c.RanTid == uint32(pid))
			inKernel += flagInt(len(th.Kernel) > 0)
		}
		t.Logf("CPU %d: the spinner was on it in %d captures, in the kernel in %d", cpu, onCore, inKernel)
		if onCore < 5 || inKernel == 0 {
			t.Errorf("CPU %d: the spinner was on it in %d of %d captures, in the kernel in %d", cpu, onCore, captures, inKernel)
		}
	})
}
