package snapshot

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"stackshot/internal/clock"
	"stackshot/internal/engine"
	"stackshot/internal/engine/stop"
	"stackshot/internal/testneed"

	"golang.org/x/sys/unix"
)

const (
	killPause   = 40 * time.Millisecond // the children's pause budget
	killWindow  = 30 * time.Millisecond // how long their window is made
	killArrival = 20 * time.Millisecond
	// Beyond the budget: the way out of the kernel, and how late a real-time
	// thread wakes on a host that takes CPUs away.
	killSlack = 15 * time.Millisecond
)

// SIGKILL of the capturing process while its workers are parked, while one
// waits for the others, and in the window: every CPU runs on within the budget.
func TestTrapKilled(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	testneed.Slow(t)
	needsRealCPUs(t)
	requireBPF(t)
	requireTwoCPUs(t)
	for _, c := range []struct {
		when        string
		least, most time.Duration // of the longest time that a CPU was kept
	}{
		{"parked", 0, killSlack},
		{"arriving", killArrival / 4, killArrival + killSlack},
		{"window", killWindow / 2, killPause + killSlack},
	} {
		aimed(t, c.when, unix.SIGKILL, c.least, c.most)
	}
	unlock, err := LockMachine(t.Context(), testneed.Patience)
	if err != nil {
		t.Fatal(err)
	}
	unlock() // the dead left no lock behind
	s, _ := trapSession(t, Options{})
	captureWhole(t, s, Request{})
}

// SIGSTOP between arming and stop, and in the window: nothing stays held while
// the process stands still, and what it then says was stopped is no more than
// what was. Its next capture is whole.
func TestTrapStopped(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	testneed.Slow(t)
	needsRealCPUs(t)
	requireBPF(t)
	requireTwoCPUs(t)
	for _, c := range []struct {
		when        string
		least, most time.Duration
	}{
		{"arming", 0, killArrival + killSlack},
		{"window", killWindow / 2, killPause + killSlack},
	} {
		said := aimed(t, c.when, unix.SIGSTOP, c.least, c.most)
		if !strings.Contains(said, "again whole true") {
			t.Errorf("SIGSTOP %s: the child says %q", c.when, said)
		}
		var stopped time.Duration
		if c.when == "window" {
			if _, err := fmt.Sscanf(said, "stopped %d", (*int64)(&stopped)); err != nil || stopped < c.least || stopped > c.most {
				t.Errorf("SIGSTOP in the window: the child says %q, want a stop of %v to %v", said, c.least, c.most)
			}
		}
	}
}

// aimed runs a child that gets the signal at that moment, while nobody else
// captures, and holds the longest gap of each CPU against the bounds. Only the
// host can add to a gap, so the best of five counts.
func aimed(t *testing.T, when string, sig syscall.Signal, least, most time.Duration) (said string) {
	t.Helper()
	unlock, err := LockMachine(t.Context(), testneed.Patience)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	var gaps []time.Duration
	for range 5 {
		said, gaps = runAimed(t, when, sig)
		if slices.Max(gaps) <= most && slices.Max(gaps) >= least {
			t.Logf("%v %s: CPUs kept for at most %v", sig, when, gaps)
			return said
		}
	}
	t.Errorf("%v %s: CPUs were kept for %v, want %v to %v", sig, when, gaps, least, most)
	return said
}

// runAimed watches the CPUs from when the child is open on: loading its programs
// keeps one of them busy in the kernel for tens of ms, with the machine running.
func runAimed(t *testing.T, when string, sig syscall.Signal) (string, []time.Duration) {
	t.Helper()
	c := startChild(t, again([]string{"-test.run=^TestTrapAimed$"}, "STACKSHOT_TEST_AIMED="+when, fmt.Sprintf("STACKSHOT_TEST_SIGNAL=%d", sig)), "ready")
	gaps := watchGaps(t)
	c.in.Close()
	if when == "parked" {
		time.Sleep(20 * time.Millisecond)
		c.Process.Signal(sig)
	}
	if sig == unix.SIGSTOP {
		var status unix.WaitStatus
		unix.Wait4(c.pid, &status, unix.WUNTRACED, nil)
		if !status.Stopped() {
			t.Errorf("%v %s: the child did not stop: %v", sig, when, status)
		}
		time.Sleep(400 * time.Millisecond)
		c.Process.Signal(unix.SIGCONT)
	}
	said, _ := io.ReadAll(c.out)
	err := c.Wait()
	if st := c.ProcessState.Sys().(syscall.WaitStatus); sig == unix.SIGKILL && st.Signal() != sig || sig == unix.SIGSTOP && err != nil {
		t.Errorf("%v %s: %v\n%s", sig, when, err, said)
	}
	return string(said), gaps()
}

// TestTrapAimed is the child. It captures without the machine's lock, which its
// parent holds.
func TestTrapAimed(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	when := os.Getenv("STACKSHOT_TEST_AIMED")
	if when == "" {
		t.Skip("is a child of TestTrapKilled and TestTrapStopped")
	}
	var sig int
	fmt.Sscan(os.Getenv("STACKSHOT_TEST_SIGNAL"), &sig)
	var armed atomic.Bool
	s := openTest(t, Options{Engine: EngineTrap, MaxPause: killPause, ArrivalBudget: killArrival}, aimedHooks(when, sig, &armed))
	fmt.Println("ready")
	io.Copy(io.Discard, os.Stdin) // to its end: the CPUs are watched
	if when == "parked" {
		select {}
	}
	sc, err := s.scope(Request{})
	if err != nil {
		t.Fatal(err)
	}
	armed.Store(true)
	c, err := s.engine.Capture(t.Context(), engine.Job{Pids: sc.pids, Size: s.firstSize(sc), Pause: killPause})
	armed.Store(false)
	if err == nil {
		fmt.Println("stopped", c.Capture.StoppedNs)
	} else {
		fmt.Println("error", err)
	}
	s.options.MaxPause = time.Second
	r, _ := takeLocked(t, s)
	fmt.Println("again whole", r.Whole())
}

func aimedHooks(when string, sig int, armed *atomic.Bool) engine.Hooks {
	pid, main := os.Getpid(), -1
	top := runtimeCPU()
	var h engine.Hooks
	if when == "window" {
		h = longWindow(func(int) time.Duration {
			if armed.Load() {
				return killWindow
			}
			return 0
		})
	}
	h.BeforeArrival = func(cpu int) {
		switch {
		case !armed.Load():
		case when == "arming":
			if armed.CompareAndSwap(true, false) {
				unix.RawSyscall(unix.SYS_KILL, uintptr(pid), uintptr(sig), 0)
			}
		case when == "arriving" && cpu != top: // the others wait for this one
			for by := clock.Nanotime() + int64(killArrival/2); clock.Nanotime() < by; {
			}
			unix.RawSyscall(unix.SYS_KILL, uintptr(pid), uintptr(sig), 0)
		case when == "window" && main < 0:
			main = cpu
			signalIn(sig, killWindow/3)
		}
	}
	return h
}

// runtimeCPU is one CPU that is stopped.
func runtimeCPU() int { return stop.CpusOnline()[0] }

// signalIn has the kernel send a signal to this process after d: a timer's, so
// that it comes with no thread of ours running.
func signalIn(sig int, d time.Duration) {
	event := [16]int32{2: int32(sig)} // struct sigevent: value, signo, SIGEV_SIGNAL
	var id int32
	unix.RawSyscall(unix.SYS_TIMER_CREATE, unix.CLOCK_MONOTONIC, uintptr(unsafe.Pointer(&event)), uintptr(unsafe.Pointer(&id)))
	at := [2]unix.Timespec{1: unix.NsecToTimespec(int64(d))}
	unix.RawSyscall6(unix.SYS_TIMER_SETTIME, uintptr(id), 0, uintptr(unsafe.Pointer(&at)), 0, 0, 0)
}

// watchGaps has a process with one real-time thread per CPU that wakes 5,000
// times a second. What is returned ends it, and gives the longest time between
// two wakes of each.
func watchGaps(t *testing.T) (gaps func() []time.Duration) {
	t.Helper()
	c := startChild(t, again([]string{"-test.run=^TestGapWatch$"}, "STACKSHOT_TEST_GAPS=1"), "ready")
	return func() (list []time.Duration) {
		c.in.Close()
		for range stop.CpusOnline() {
			var ns int64
			if _, err := fmt.Fscanln(c.out, &ns); err != nil {
				t.Error(err)
			}
			list = append(list, time.Duration(ns))
		}
		c.Wait()
		return list
	}
}

func TestGapWatch(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	if os.Getenv("STACKSHOT_TEST_GAPS") == "" {
		t.Skip("is a child of TestTrapKilled and TestTrapStopped")
	}
	cpus := stop.CpusOnline()
	runtime.GOMAXPROCS(len(cpus) + 2)
	debug.SetGCPercent(-1)
	var over atomic.Bool
	var ready, done sync.WaitGroup
	longest := make([]int64, len(cpus))
	for i, cpu := range cpus {
		ready.Add(1)
		done.Go(func() { longest[i] = watchCPU(cpu, &ready, &over) })
	}
	ready.Wait()
	fmt.Println("ready")
	io.Copy(io.Discard, os.Stdin)
	over.Store(true)
	done.Wait()
	for _, ns := range longest {
		fmt.Println(ns)
	}
}

// watchCPU wakes often on one CPU, and gives the longest time that it did not.
func watchCPU(cpu int, ready *sync.WaitGroup, over *atomic.Bool) (longest int64) {
	runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
	stop.BlockPreemptionSignal()
	var set unix.CPUSet
	set.Set(cpu)
	unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 50}, 0)
	unix.SchedSetaffinity(0, &set)
	ready.Done()
	for last := clock.Nanotime(); !over.Load(); {
		rawSleep(200 * time.Microsecond)
		now := clock.Nanotime()
		longest, last = max(longest, now-last), now
	}
	return longest
}
