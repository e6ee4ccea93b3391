package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/testfuse"
	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
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

// Seen from outside: urgent, ordinary while names are looked up, urgent again; and
// the process that writes the file, which here hangs in doing so, is urgent too.
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
		for _, want := range []string{"rr", "other", "rr"} { // before its end it is ordinary again
			i := slices.Index(rest, want)
			if i >= 0 {
				rest = rest[i+1:]
				continue
			}
			t.Errorf("policies %q: want rr, other, rr; %s", seen, out.String())
		}
		if helper != "rr" {
			t.Errorf("the process that writes has %q", helper)
		}
	})
}

// policies names those that the threads of a process have, but of workers, which
// are real-time beyond that: "rr", "other", or both; "": it has ended.
func policies(pid int) string {
	list, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	found := map[string]bool{}
	for _, dir := range list {
		tid, _ := strconv.Atoi(filepath.Base(dir))
		switch now, err := scheduleOf(tid); {
		case err != nil:
		case now == urgent:
			found["rr"] = true
		case now.policy == unix.SCHED_NORMAL:
			found["other"] = true
		}
	}
	var names []string
	for name := range found {
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, " and ")
}

// No thread stays behind, however many are made meanwhile, and each keeps its nice
// value. What spends its budget becomes ordinary by itself. A child does it: the process that it
// changes is its own.
func TestUrgencyIsOfEveryThread(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	testneed.Slow(t)
	needRoot(t)
	if os.Getenv("STACKSHOT_TEST_URGENT") == "" {
		cmd := exec.Command("/proc/self/exe", "-test.run=^TestUrgencyIsOfEveryThread$", "-test.v")
		cmd.Env = append(os.Environ(), "STACKSHOT_TEST_URGENT=1")
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: ") {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	runtime.LockOSThread()
	tid := unix.Gettid()
	if err := unix.Setpriority(unix.PRIO_PROCESS, tid, 3); err != nil {
		t.Fatal(err)
	}
	end := make(chan struct{})
	defer close(end)
	threads := func(n int) {
		for range n {
			go func() {
				runtime.LockOSThread()
				<-end
			}()
			time.Sleep(100 * time.Microsecond)
		}
	}
	pid := os.Getpid()
	var u urgency
	for range 5 {
		go threads(50)
		time.Sleep(time.Millisecond)
		if err := u.begin(); err != nil {
			t.Fatal(err)
		}
		for range 20 {
			if p := policies(pid); p != "rr" {
				t.Fatalf("begun: %s", p)
			}
			time.Sleep(time.Millisecond)
		}
		go threads(50)
		time.Sleep(time.Millisecond)
		u.end()
		for range 20 {
			if p := policies(pid); p != "other" {
				t.Fatalf("ended: %s", p)
			}
			time.Sleep(time.Millisecond)
		}
	}
	if nice, err := unix.Getpriority(unix.PRIO_PROCESS, tid); err != nil || 20-nice != 3 {
		t.Errorf("nice %d, %v", 20-nice, err)
	}
	short := urgency{budget: 50 * time.Millisecond}
	if err := short.begin(); err != nil {
		t.Fatal(err)
	}
	for began := cpuTime(); policies(pid) != "other"; {
		if cpuTime()-began > time.Second {
			t.Fatalf("a budget of %v, spent %v", short.budget, cpuTime()-began)
		}
	}
	var before, limit unix.Rlimit
	if err := errors.Join(unix.Getrlimit(unix.RLIMIT_RTTIME, &before), urgent.set(tid)); err != nil {
		t.Fatal(err)
	}
	limitRealTime(0) // whoever is started so is left alone
	if err := unix.Getrlimit(unix.RLIMIT_RTTIME, &limit); err != nil || limit != before {
		t.Errorf("started at a real-time priority: RLIMIT_RTTIME %+v, %v", limit, err)
	}
	if err := ordinary.set(tid); err != nil {
		t.Fatal(err)
	}
	limitRealTime(0)
	if err := unix.Getrlimit(unix.RLIMIT_RTTIME, &limit); err != nil || limit.Max > uint64(2*urgentBudget/time.Microsecond) { // the soft one kills no Go program
		t.Errorf("RLIMIT_RTTIME %+v, %v", limit, err)
	}
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
