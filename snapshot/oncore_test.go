package snapshot

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
	"stackshot/kcdata"
)

// Every fourth capture is of the whole machine, the others of those concerned:
// the test and its load share the CPUs with what they test.
var onCoreCaptures = testneed.Length(50, 200)

// A spinner in user mode and one in a system call, each on a CPU of its own
// and under load, are in every file what they were when the stop came, and
// nothing of ours is in anybody's stack.
func TestSpinnersAreOnCore(t *testing.T) {
	testneed.Lab(t, testneed.Scheduler)
	testneed.Slow(t)
	requireTwoCPUs(t)
	s, _ := trapSession(t, Options{ArrivalBudget: slow(100 * time.Millisecond)})
	cpus := s.plan.Stop[:2]
	concerned := []int{os.Getpid()}
	for _, cpu := range cpus {
		for _, pid := range pidsOf(testtask.CPUHogs(t, cpu, 3)) { // the load
			if err := unix.Setpriority(unix.PRIO_PROCESS, pid, 19); err != nil {
				t.Fatal(err)
			}
			concerned = append(concerned, pid)
		}
	}
	f := testtask.Start(t, testtask.Spinning, testtask.SpinSyscall)
	spinners := []spinner{
		{f.One(testtask.Spinning, "").Pid, cpus[0], wasInUserMode},
		{f.One(testtask.SpinSyscall, "").Pid, cpus[1], wasInRead},
	}
	for _, sp := range spinners {
		sp.pin(t)
	}
	concerned = append(concerned, pidsOf(f)...)
	on := map[string]int{}
	for n := range onCoreCaptures {
		req := Request{Pids: concerned}
		if n%4 == 0 {
			req.Pids = nil
		}
		_, snap, _ := captureWhole(t, s, req)
		for _, sp := range spinners {
			on[sp.check(t, snap)]++
		}
		wantNothingOfOurs(t, snap)
	}
	t.Logf("of %d sightings: %v", len(spinners)*onCoreCaptures, on)
	if on["on core"] == 0 {
		t.Error("no spinner was ever on its CPU")
	}
	if on[switchMissed] > len(spinners)*onCoreCaptures/100 {
		t.Errorf("%s %d times", switchMissed, on[switchMissed])
	}
	s = ownSession(t, Options{Engine: EnginePull, ArrivalBudget: slow(100 * time.Millisecond), Latency: LatencyOff})
	clear(on)
	for n := 0; n < 5 || on["on core"] == 0 && n < 60; n++ { // the load may have the CPUs for a while
		_, snap, _ := captureWhole(t, s, Request{Pids: concerned})
		for _, sp := range spinners {
			on[sp.check(t, snap)]++
		}
		wantNothingOfOurs(t, snap)
	}
	if t.Logf("by pull: %v", on); on["on core"] == 0 {
		t.Error("pull: no spinner was ever on its CPU")
	}
}

// A spinner is one process that never sleeps, on one CPU.
type spinner struct {
	pid, cpu int
	fits     func(th *kcdata.Thread, stack []string) bool
}

// pin gives the spinner its CPU, and more of it than the load gets.
func (sp spinner) pin(t *testing.T) {
	t.Helper()
	var set unix.CPUSet
	set.Set(sp.cpu)
	if err := unix.SchedSetaffinity(sp.pid, &set); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setpriority(unix.PRIO_PROCESS, sp.pid, -3); err != nil {
		t.Fatal(err)
	}
}

// check holds a spinner against one file and says how it was found.
func (sp spinner) check(t *testing.T, snap *kcdata.Snapshot) string {
	t.Helper()
	th := threadsByID(snap)[uint64(sp.pid)]
	if th == nil {
		t.Errorf("the spinner %d is not in the file", sp.pid)
		return "missing"
	}
	stack := plain(t, snap, th)
	if int(th.Linux.CPU) != sp.cpu || letter(&th.Linux) != 'R' {
		t.Errorf("the spinner %d: state %c on CPU %d, want R on %d", sp.pid, letter(&th.Linux), th.Linux.CPU, sp.cpu)
	}
	if th.Linux.KstackErr != 0 || !sp.fits(th, stack) || len(stack) != int(th.Linux.KstackDepth) {
		t.Errorf("the spinner %d: presence %#x, system call %+v, stack %v", sp.pid, th.Linux.Present, th.Syscall, stack)
	}
	c, _ := snap.CPU(uint32(sp.cpu))
	l := &th.Linux
	known, ran := c.Flags&kcdata.CPURanKnown != 0, int(c.RanTid) == sp.pid
	waits := l.LastQueued != 0 && l.LastQueued >= l.LastArrival && l.LastQueued <= c.RqClock
	switch {
	case known && l.LastArrival > c.RqClock:
		return switchMissed // it ran later than the file says that the CPU was taken
	case l.Present&kcdata.ThreadDisplaced != 0 && l.DisplacedNs > 0:
		return "displaced"
	case known && ran != (l.OnCPU == 1):
		t.Errorf("the spinner %d: on its CPU %d, which says that it ran %d", sp.pid, l.OnCPU, c.RanTid)
	case l.OnCPU == 1:
		return "on core"
	case known && !waits:
		t.Errorf("the spinner %d: not on its CPU, which ran %d and has clock %d; last queued %d, last arrival %d",
			sp.pid, c.RanTid, c.RqClock, l.LastQueued, l.LastArrival)
	}
	return "preempted by the load"
}

// switchMissed: of some switches no BPF program is told (this test's own traces
// lack them too), and then what the CPU ran is what it ran before.
const switchMissed = "a switch was missed"

// wasInUserMode: taken by an interrupt, which is all that its kernel stack has.
// If the stop took it, the file has not even that.
func wasInUserMode(th *kcdata.Thread, stack []string) bool {
	if th.Linux.Present&kcdata.ThreadUserMode == 0 || th.Syscall == nil || th.Syscall.Nr != -1 {
		return false
	}
	if th.Linux.OnCPU == 1 {
		return len(stack) == 0 && th.Linux.KstackSkipped > 0
	}
	return len(stack) > 0 && interruptEntry(stack[len(stack)-1]) && !has(stack, "do_syscall_64", "el0_svc")
}

// wasInRead: in the call, or between two. If the stop took it, its stack begins
// in the call, not in the interrupt that ended it.
func wasInRead(th *kcdata.Thread, stack []string) bool {
	if th.Linux.OnCPU == 1 && len(stack) > 0 && (interruptEntry(stack[0]) || has(stack[:1], "irqentry_exit", "exit_to_user_mode_loop")) {
		return false
	}
	if len(stack) == 0 {
		return wasInUserMode(th, stack)
	}
	inCall := th.Syscall != nil && th.Syscall.Nr == unix.SYS_READ && th.Linux.Present&kcdata.ThreadUserMode == 0 &&
		has(stack, "do_syscall_64", "el0_svc") && has(stack[len(stack)-1:], "entry_SYSCALL_64_after_hwframe", "el0t_64_sync")
	return inCall || wasInUserMode(th, stack)
}

// interruptEntry says whether a function is where an interrupt of user mode
// enters the kernel.
func interruptEntry(name string) bool {
	for _, prefix := range []string{"asm_sysvec_", "asm_common_interrupt", "asm_exc_", "el0t_64_irq", "el0t_64_fiq"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// wantNothingOfOurs: no frame of a BPF program in a thread that is not the
// snapshotter's, unless the thread is itself at reading what programs make, as
// the snapshotters of other tests are.
func wantNothingOfOurs(t *testing.T, snap *kcdata.Snapshot) {
	t.Helper()
	for _, task := range snap.Tasks {
		for _, th := range task.Threads {
			var ours, reads string
			for _, addr := range th.Kernel {
				switch sym, _ := snap.Symbols.Name(addr); {
				case bpfProgram.MatchString(sym.Name) || strings.Contains(sym.Name, "stackshot"):
					ours = sym.Name
				case sym.Name == "bpf_seq_read":
					reads = sym.Name
				}
			}
			if ours != "" && reads == "" && !task.IsSelf() {
				t.Errorf("thread %d of task %d (%s) has %s in its stack", th.ID, task.ID, task.Name, ours)
			}
		}
	}
}

// bpfProgram is how the kernel names one: by its tag and its own name.
var bpfProgram = regexp.MustCompile(`^bpf_prog_[0-9a-f]{16}`)
