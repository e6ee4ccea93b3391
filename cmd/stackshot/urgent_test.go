package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/testfuse"
	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
	"stackshot/internal/urgency"
	"stackshot/kcdata"
)

// slow is a test's budget as an emulated machine needs it.
func slow(d time.Duration) time.Duration {
	factor, _ := strconv.Atoi(os.Getenv("STACKSHOT_TIME_FACTOR"))
	return d * time.Duration(max(factor, 1))
}

// besideHogs runs f beside n busy threads on each CPU.
func besideHogs(t *testing.T, n int, f func(t *testing.T)) {
	t.Run("hogs", func(t *testing.T) { // they end with it
		for cpu := range runtime.NumCPU() {
			testtask.CPUHogs(t, cpu, n)
		}
		f(t)
	})
}

// Beside twelve busy threads on each CPU the file is written within 5 s, and every
// thread of the command that it holds was a real-time one, also in each capture of a series.
func TestBesideHogs(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	testneed.Slow(t)
	needRoot(t)
	file := filepath.Join(t.TempDir(), "file")
	var took time.Duration
	for range 3 { // another test may have had the machine
		took = time.Hour
		besideHogs(t, 12, func(t *testing.T) {
			o := stackshot(t, "take", "-o", file)
			taken(t, o)
			took = o.took
		})
		if t.Logf("taken in %v", took); took < slow(5*time.Second) {
			break
		}
	}
	if took >= slow(5*time.Second) {
		t.Errorf("beside hogs it took %v", took)
	}
	allUrgent(t, file)
	dir := t.TempDir()
	taken(t, stackshot(t, "take", "--count", "2", "-q", "-o", dir))
	for _, file := range filesIn(t, dir) {
		allUrgent(t, file)
	}
}

// allUrgent checks that every thread of the command, as its own file has it, was a
// real-time one.
func allUrgent(t *testing.T, file string) {
	t.Helper()
	threads := 0
	for _, task := range snapshotOf(t, file).Tasks {
		if !task.HasLinux || task.Linux.Ppid != uint32(os.Getpid()) || task.Name != "stackshot" {
			continue
		}
		for _, th := range task.Threads {
			threads++
			if p := th.Linux.Policy; p != unix.SCHED_RR && p != unix.SCHED_FIFO {
				t.Errorf("thread %d of the command has policy %d", th.ID, p)
			}
		}
	}
	if threads < 4 {
		t.Errorf("%d threads of the command are in the file", threads)
	}
}

// Seen from outside: urgent until the file is written, also the process that writes it, which here
// hangs in doing so; then ordinary, while names are looked up.
func TestUrgentButForNames(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	testneed.Slow(t)
	t.Parallel()
	needRoot(t)
	stall(t, testfuse.Write, func(t *testing.T, dir string) {
		cmd := exec.Command(program, patient(t, "take", "--write-timeout", "1s", "-o", dir+"/x")...)
		var out watched
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- cmd.Wait() }()
		var seen []string // the policies of all its threads, each time that they differ
		helper := ""
		for running := true; running; time.Sleep(200 * time.Microsecond) {
			select {
			case <-done:
				running = false
			default:
			}
			if p := policies(cmd.Process.Pid); p != "" && (len(seen) == 0 || seen[len(seen)-1] != p) {
				seen = append(seen, p)
			}
			for _, pid := range helpersOf(dir) {
				helper = policies(pid)
			}
		}
		outcome{stderr: out.String()}.spared(t)
		t.Logf("%q", seen)
		rest := seen
		for _, want := range []string{"rr", "other"} {
			i := slices.Index(rest, want)
			if i >= 0 {
				rest = rest[i+1:]
				continue
			}
			t.Errorf("policies %q: want rr, other; %s", seen, out.String())
		}
		if len(seen) > 0 && seen[len(seen)-1] != "other" {
			t.Errorf("policies %q: at its end it is not ordinary", seen)
		}
		if helper != "rr" {
			t.Errorf("the process that writes has %q", helper)
		}
	})
}

// policies names those that the threads of a process have, but of workers and the keeper, which
// are real-time beyond that: "rr", "other", or both; "": it has ended.
func policies(pid int) string {
	var names []string
	for _, s := range testtask.Schedules(pid) {
		switch s {
		case fmt.Sprintf("%d/%d", unix.SCHED_RR, urgency.Priority), fmt.Sprintf("%d/%d", unix.SCHED_RR, urgency.Raised):
			names = append(names, "rr")
		case fmt.Sprintf("%d/0", unix.SCHED_NORMAL):
			names = append(names, "other")
		}
	}
	return strings.Join(names, " and ")
}

// Without the right to it the capture goes on as it can. On a busy machine the file
// says so; with the right to priorities alone it need not.
func TestUrgencyRefused(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	testneed.Slow(t)
	needRoot(t)
	dir := openDir(t)
	for _, caps := range [][]uintptr{nil, {unix.CAP_SYS_NICE}} {
		besideHogs(t, 3, func(t *testing.T) {
			o := invocation{bend: asNobodyWith(caps)}.run(t, "take", "-o", dir+"/file", "--json", "--engine", "procfs", "--pid", strconv.Itoa(os.Getpid()))
			taken(t, o)
			if said := strings.Contains(o.stdout, `"ordinary_priority"`); said != (caps == nil) {
				t.Errorf("rights %d: %s", caps, o.stdout)
			}
			if said := strings.Contains(readText(t, dir+"/file"), "SCHED_RR 1"); said != (caps == nil) {
				t.Errorf("rights %d: in the report: %v", caps, said)
			}
		})
	}
}

// FIFO hogs come and go on either CPU, also in the middle of a collection of garbage, when the Go
// runtime of a capture may do nothing but spin. No capture is urgent for longer than its budget, and
// none is killed for it.
func TestHogsThatComeAndGo(t *testing.T) {
	testneed.Lab(t, testneed.Scheduler)
	testneed.Slow(t)
	needRoot(t)
	n := testneed.Length(10, 500)
	var loops sync.WaitGroup
	var made, seen, spent atomic.Int64
	for range 3 {
		loops.Go(func() {
			dir := t.TempDir()
			for range n {
				made.Add(1)
				used := urgentFor(t, "take", "-q", "-o", dir+"/file")
				if used > 0 {
					seen.Add(1)
				}
				if used > urgency.Budget*9/10 {
					spent.Add(1)
				}
				if used > urgency.Budget+100*time.Millisecond {
					t.Errorf("urgent for %v of CPU time", used)
				}
			}
		})
	}
	done := make(chan bool)
	go func() {
		loops.Wait()
		close(done)
	}()
	random := rand.New(rand.NewPCG(1, 1))
	for left := true; left; {
		t.Run("hog", func(t *testing.T) {
			life := []time.Duration{300 * time.Millisecond, time.Second, 3 * time.Second, 8 * time.Second}[random.IntN(4)] // the last for longer than a budget
			testtask.FIFOHog(t, random.IntN(runtime.NumCPU()), life)
			time.Sleep(life)
		})
		select {
		case <-done:
			left = false
		case <-time.After(time.Duration(100+random.IntN(1400)) * time.Millisecond):
		}
	}
	t.Logf("%d captures, %d of them seen urgent, %d of them for a whole budget", made.Load(), seen.Load(), spent.Load())
	if seen.Load() < made.Load()*9/10 {
		t.Error("too few were seen urgent")
	}
	if testneed.Length(false, true) && spent.Load() == 0 {
		t.Error("no budget was spent: the test proves nothing")
	}
}

// While real-time tasks have every CPU a capture is made above them, and shows them. It says so, and the file does.
func TestHogsOnEveryCPU(t *testing.T) {
	testneed.Lab(t, testneed.Scheduler)
	testneed.Slow(t)
	needRoot(t)
	file := filepath.Join(t.TempDir(), "file")
	for cpu := range runtime.NumCPU() {
		testtask.FIFOHogAt(t, cpu, 50, 20*time.Second) // this process has a twentieth of the CPUs then
	}
	o := stackshot(t, "take", "-o", file)
	taken(t, o)
	o.want(t, o.code, "had no CPU for 1 s; real-time tasks that run or want to: ", "FIFO 50", "SCHED_RR 98")
	s, hogs := snapshotOf(t, file), 0
	for _, task := range s.Tasks {
		for _, th := range task.Threads {
			if th.Linux.Policy == unix.SCHED_FIFO && th.Linux.RtPriority == 50 && th.Linux.State == 0 { // runs, or wants to
				hogs++
			}
		}
	}
	if hogs < runtime.NumCPU() {
		t.Errorf("%d of %d hogs run in the file: it was taken when they had gone", hogs, runtime.NumCPU())
	}
	if !slices.ContainsFunc(s.Warnings, func(w kcdata.Warning) bool { return w.Code == "starved" }) {
		t.Errorf("warnings %q", s.Warnings)
	}
}

// urgentFor runs a capture and gives the CPU time that it had used when it was last seen urgent.
func urgentFor(t *testing.T, args ...string) (used time.Duration) {
	cmd := exec.Command(program, patient(t, args...)...)
	var out watched
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Error(err)
		return 0
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	for {
		select {
		case <-done:
			if code := cmd.ProcessState.ExitCode(); code != exitWhole && code != exitIncomplete {
				t.Errorf("%v: %s", cmd.ProcessState, out.String())
			}
			return used
		case <-time.After(5 * time.Millisecond):
		}
		var now unix.Timespec
		clock := int32(^cmd.Process.Pid<<3 | 2) // CPUCLOCK_SCHED of a process (clock_getcpuclockid)
		if unix.ClockGettime(clock, &now) == nil && strings.Contains(policies(cmd.Process.Pid), "rr") {
			used = time.Duration(now.Nano())
		}
	}
}
