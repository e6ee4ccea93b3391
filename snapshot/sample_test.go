package snapshot

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/bpf"
	"stackshot/internal/engine"
	"stackshot/internal/engine/sample"
	"stackshot/internal/procfs"
	"stackshot/internal/report"
	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
	"stackshot/kcdata"
)

// hogged takes one capture while somebody's FIFO-99 task keeps a CPU.
// The caller ends it.
func hogged(t *testing.T, s *Session, hog func() *testtask.Fixture) (f *testtask.Fixture, pid int, snap *kcdata.Snapshot) {
	t.Helper()
	unlock, err := LockMachine(t.Context(), testneed.Patience) // nobody else's capture meets the hog
	if err != nil {
		t.Fatal(err)
	}
	f = hog()
	unlock()
	_, snap, _ = captureOnce(t, s, Request{})
	return f, f.Children[0].Pid, snap
}

// sampleIn is the thread of a single-threaded task, if it has a sample.
func sampleIn(snap *kcdata.Snapshot, pid int) *kcdata.Thread {
	if th := threadsByID(snap)[uint64(pid)]; th != nil && th.Sample != nil {
		return th
	}
	return nil
}

// firstLines is what a reader of the report sees first.
func firstLines(t *testing.T, snap *kcdata.Snapshot) string {
	t.Helper()
	var b bytes.Buffer
	if err := report.Text(&b, snap, report.Options{}); err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfterN(b.String(), "\n", 9)
	return strings.Join(lines[:min(len(lines), 8)], "")
}

// checkRan holds a sampled thread of a CPU that was not stopped against the
// records around it.
func checkRan(t *testing.T, snap *kcdata.Snapshot, th *kcdata.Thread, cpu int) {
	t.Helper()
	c, ok := snap.CPU(uint32(cpu))
	if !ok || c.Flags&kcdata.CPURanKnown == 0 || uint64(c.RanTid) != th.ID || c.Flags&kcdata.CPUIdle != 0 {
		t.Errorf("CPU %d: %+v, want what thread %d is", cpu, c, th.ID)
	}
	l := &th.Linux
	if th.Sample.CPU != uint32(cpu) || l.CPU != uint32(cpu) || l.OnCPU != 1 || l.Present&kcdata.ThreadHasOnCPU == 0 {
		t.Errorf("thread %d: sample %+v, on_cpu %d of CPU %d", th.ID, th.Sample, l.OnCPU, l.CPU)
	}
	if int(l.KstackDepth) != len(th.Kernel) {
		t.Errorf("thread %d: kstack_depth %d, %d frames", th.ID, l.KstackDepth, len(th.Kernel))
	}
	if th.Sample.DelayNs == 0 || th.Sample.DelayNs > uint64(10*time.Second) || th.Sample.AtNs < th.Sample.DelayNs {
		t.Errorf("thread %d: sampled at %d, %d after the window", th.ID, th.Sample.AtNs, th.Sample.DelayNs)
	}
}

// executable reports whether an address lies in executable memory of a process.
func executable(t *testing.T, pid int, addr uint64) bool {
	t.Helper()
	for line := range strings.Lines(slurp(t, fmt.Sprintf("/proc/%d/maps", pid))) {
		var from, to uint64
		var perms string
		if _, err := fmt.Sscanf(line, "%x-%x %s", &from, &to, &perms); err != nil {
			t.Fatal(err)
		}
		if addr >= from && addr < to {
			return strings.Contains(perms, "x")
		}
	}
	return false
}

// wantSampled wants of a hog, in user mode on a CPU that did not come to the stop, the stack of its
// sample and no other: its saved registers are stale. The report begins with thread, CPU and place.
// False: it has no sample.
func wantSampled(t *testing.T, snap *kcdata.Snapshot, pid, cpu int) bool {
	t.Helper()
	th := threadsByID(snap)[uint64(pid)]
	c, _ := snap.CPU(uint32(cpu))
	if c.Flags&kcdata.CPUStopped == 0 && (th == nil || th.UserHow != nil || th.UserWalk == nil || th.UserWalk.Flags&kcdata.UserUnwound != 0 ||
		len(th.UserBytes)+len(th.UserChain) > 0 || len(th.User) > 0 && th.Sample == nil) {
		t.Errorf("a stack from stale registers: %+v", th)
	}
	if th = sampleIn(snap, pid); th == nil || th.Sample.User == 0 {
		return false
	}
	checkRan(t, snap, th, cpu)
	if th.Linux.Present&kcdata.ThreadUserMode == 0 || len(th.User) == 0 || th.User[0] != th.Sample.IP || !executable(t, pid, th.User[0]) {
		t.Errorf("present %#x, at %#x, user stack %#x", th.Linux.Present, th.Sample.IP, th.User)
	}
	want := fmt.Sprintf("CPU %d did not stop in time. It ran %s [%d] tid %d (FIFO 99), in user mode at %#x", cpu, th.Name, pid, pid, th.Sample.IP)
	if first := firstLines(t, snap); !strings.Contains(strings.Join(strings.Fields(first), " "), want) {
		t.Errorf("the report begins\n%swithout %q", first, want)
	}
	return true
}

// One that loops through system calls is found in the kernel, by function.
func TestSampleInASystemCall(t *testing.T) {
	testneed.Lab(t, testneed.Scheduler)
	testneed.Slow(t)
	requireBPF(t)
	requireTwoCPUs(t)
	for _, o := range []Options{{Engine: EnginePull}, {Engine: EngineTrap}, {Engine: EnginePull, Redact: true}} {
		if o.Engine == EngineTrap && !trapHere() {
			continue
		}
		s := session(t, o)
		cpu, found := s.plan.Stop[1], false
		for range 40 { // on some hosts one sample in six is of the kernel
			hog, pid, snap := hogged(t, s, func() *testtask.Fixture { return testtask.FIFOCallHog(t, cpu, 20*time.Second) })
			hog.Close()
			th := sampleIn(snap, pid)
			if th == nil || th.Sample.User != 0 {
				continue // throttled, or between two calls
			}
			checkRan(t, snap, th, cpu)
			stack := plain(t, snap, th)
			if len(th.Kernel) == 0 || th.Linux.Present&(kcdata.ThreadHasStack|kcdata.ThreadUserMode) != kcdata.ThreadHasStack {
				t.Errorf("%+v: kernel frames %v, present %#x", o, stack, th.Linux.Present)
			}
			sym, _ := snap.Symbols.Name(th.Kernel[0])
			first := strings.Join(strings.Fields(firstLines(t, snap)), " ")
			if want := fmt.Sprintf("tid %d (FIFO 99), in the kernel at %s+", pid, sym.Name); !strings.Contains(first, want) {
				t.Errorf("%+v: the report begins %q without %q", o, first, want)
			}
			if o.Redact && (th.Sample.IP != 0 || len(th.User) != 0 || th.Kernel[0] >= 1<<63) {
				t.Errorf("redacted: at %#x, frames %#x, user %#x", th.Sample.IP, th.Kernel, th.User)
			}
			if !o.Redact && (th.Sample.IP != th.Kernel[0] || len(th.User) == 0) {
				t.Errorf("%+v: at %#x, frames %#x, user %#x", o, th.Sample.IP, th.Kernel, th.User)
			}
			if found = has(stack, "ksys_read", "__x64_sys_read", "__arm64_sys_read", "vfs_read"); found {
				break
			}
		}
		if !found {
			t.Errorf("%+v: the hog of CPU %d has no sample in read(2)", o, cpu)
		}
	}
}

// spinners pins one to each of two CPUs.
func spinners(t *testing.T, s *Session) map[int]int {
	t.Helper()
	out := map[int]int{}
	for _, cpu := range s.plan.Stop[:2] {
		out[cpu] = testtask.CPUHogs(t, cpu, 1).Children[0].Pid
	}
	return out
}

// wantSpinners captures until each spinner was found on its CPU in user mode,
// which takes a few goes where others want the CPUs too.
func wantSpinners(t *testing.T, s *Session, check func(*kcdata.Snapshot, *kcdata.Thread, int)) {
	t.Helper()
	missing := spinners(t, s)
	for range 40 {
		_, snap, _ := captureOnce(t, s, Request{})
		for cpu, pid := range missing {
			th := sampleIn(snap, pid)
			if th == nil || th.Sample.User == 0 {
				continue
			}
			delete(missing, cpu)
			if th.Sample.CPU != uint32(cpu) || len(th.User) == 0 || th.User[0] != th.Sample.IP || !executable(t, pid, th.User[0]) {
				t.Errorf("CPU %d: %+v, user stack %#x", cpu, th.Sample, th.User)
			}
			check(snap, th, cpu)
		}
		if len(missing) == 0 {
			return
		}
	}
	t.Errorf("no sample of the spinners %v", missing)
}

// Nothing is stopped, and what runs has stacks.
func TestSamplesWithoutAStop(t *testing.T) {
	testneed.Lab(t, testneed.Scheduler)
	requireBPF(t)
	requireTwoCPUs(t)
	wantSpinners(t, session(t, Options{Engine: EngineProcfs}), func(snap *kcdata.Snapshot, th *kcdata.Thread, cpu int) {
		checkRan(t, snap, th, cpu)
	})
}

// Nor where SCHED_FIFO is refused: pull's workers hold nobody then.
func TestSamplesWithIsolationNone(t *testing.T) {
	testneed.Lab(t, testneed.Scheduler)
	if !inChild(t, nil, unix.CAP_SYS_NICE) {
		return
	}
	s := openTest(t, Options{Engine: EnginePull, ArrivalBudget: time.Second}, engine.Hooks{})
	needCPUs(t, s, 2)
	wantSpinners(t, s, func(snap *kcdata.Snapshot, _ *kcdata.Thread, _ int) {
		if snap.Isolation != IsolationNone {
			t.Errorf("isolation %s", snap.Isolation)
		}
	})
}

// A CPU that is left running on purpose, here because it has no worker.
func TestSampleOfACPUThatIsLeft(t *testing.T) {
	testneed.Lab(t, testneed.Scheduler)
	s := openTest(t, Options{ArrivalBudget: time.Second}, engine.Hooks{})
	needCPUs(t, s, 2)
	all := s.team.Workers
	s.team.Workers = all[:1]
	t.Cleanup(func() { s.team.Workers = all }) // before the session is closed
	cpu := all[1].CPU
	pid, found := testtask.CPUHogs(t, cpu, 1).Children[0].Pid, false
	for range 40 {
		_, snap, _ := captureOnce(t, s, Request{})
		if c, _ := snap.CPU(uint32(cpu)); c.Flags&kcdata.CPULeft == 0 {
			t.Fatalf("CPU %d: %+v", cpu, c)
		}
		for _, c := range snap.CPUs {
			if th := threadsByID(snap)[uint64(c.RanTid)]; c.Flags&kcdata.CPULeft != 0 && c.RanTid != 0 && th != nil && (th.Sample == nil || th.Linux.OnCPU != 1) {
				t.Errorf("CPU %d ran thread %d, which has on_cpu %d, sample %+v", c.CPU, c.RanTid, th.Linux.OnCPU, th.Sample)
			}
		}
		if th := sampleIn(snap, pid); th != nil {
			checkRan(t, snap, th, cpu)
			found = true
			break
		}
	}
	if !found {
		t.Errorf("no sample of the spinner on CPU %d", cpu)
	}
}

// machineOf is a /proc of two files.
func machineOf(t *testing.T, interrupts, user, idle int) procfs.FS {
	t.Helper()
	root := t.TempDir()
	for name, text := range map[string]string{
		"interrupts": fmt.Sprintf("     CPU0 CPU1\nLOC: 1 %d timer\n", interrupts),
		"stat":       fmt.Sprintf("cpu0 1 1 1 1 1\ncpu1 %d 0 5 %d 0\n", user, idle),
	} {
		if err := os.WriteFile(root+"/"+name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return procfs.FS{Root: root}
}

// Who takes interrupts: any of three signs will do, and without one the CPU is
// waited for and then left alone.
func TestSilentCPUs(t *testing.T) {
	testneed.Live(t)
	before, err := machineOf(t, 7, 7, 7).Activity()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		interrupts, user, idle int
		silent                 bool
	}{{7, 7, 7, true}, {8, 7, 7, false}, {7, 8, 7, false}, {7, 7, 8, false}} {
		p := &sample.Sampler{Proc: machineOf(t, c.interrupts, c.user, c.idle)}
		began := time.Now()
		if got := p.Silent([]int{1}, before); (len(got) == 1) != c.silent {
			t.Errorf("%+v: silent %v", c, got)
		}
		if took := time.Since(began); c.silent && took < sample.SamplePatience { // time: load makes it longer only
			t.Errorf("%+v: called silent after %v", c, took)
		}
	}
	p := &sample.Sampler{Proc: procfs.FS{Root: t.TempDir()}}
	if got := p.Silent([]int{0, 1}, before); len(got) != 2 {
		t.Errorf("nothing to read, and yet only %v are silent", got)
	}
}

// A CPU that takes no interrupts is not touched, and named.
func TestDeafCPUIsLeftAlone(t *testing.T) {
	testneed.Live(t)
	requireBPF(t)
	s := ownSession(t, Options{Engine: EngineProcfs})
	live := s.sampler.Proc
	s.sampler.Proc = machineOf(t, 7, 7, 7)
	res, snap, _ := captureOnce(t, s, Request{})
	for _, cpu := range res.CPUs.Online[:min(2, len(res.CPUs.Online))] {
		if !strings.Contains(fmt.Sprint(res.Warnings), fmt.Sprintf("CPU %d took no interrupt in ", cpu)) || !hasWarning(res, "cpu_deaf") {
			t.Errorf("CPU %d: warnings %v", cpu, res.Warnings)
		}
	}
	for id, th := range threadsByID(snap) {
		if th.Sample != nil {
			t.Errorf("thread %d: %+v", id, th.Sample)
		}
	}
	for cpu, m := range s.sampler.Objects.Samples {
		if m.Wanted != 0 {
			t.Errorf("CPU %d was asked", cpu)
		}
	}
	s.sampler.Proc = live // its events are closed with the session
}

// Without the program, or without leave to use it, all else works.
func TestNoSampler(t *testing.T) {
	testneed.Live(t)
	s := openTest(t, Options{}, engine.Hooks{})
	if err := s.sampler.Close(); err != nil {
		t.Fatal(err)
	}
	s.sampler = nil
	o := s.team.Objects
	o.Sample = nil
	if _, err := sample.Open(o, bpf.Config{}, s.machine, s.plan.Topology.Online()); !errors.Is(err, bpf.ErrUnsupported) {
		t.Errorf("without the program: %v", err)
	}
	s.startSampler(o)
	r, snap := s.mustTake(t)
	if !hasWarning(r, "no_samples") || len(snap.Tasks) < 10 {
		t.Errorf("%d tasks, warnings %v", len(snap.Tasks), r.Warnings)
	}
}
