package bpf

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/capture"
	"stackshot/internal/testneed"
)

func loadSampler(t *testing.T, cfg Config) *Objects {
	t.Helper()
	cfg.CPUs = 1024
	o, err := LoadSampler(cfg)
	mustLoad(t, err)
	t.Cleanup(func() { o.Close() })
	return o
}

// spin keeps a thread of ours in user mode on its CPU until the test ends. It
// gives the thread and the CPU.
func spin(t *testing.T) (tid, cpu int) {
	t.Helper()
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		t.Fatal(err)
	}
	for !set.IsSet(cpu) {
		cpu++
	}
	var over atomic.Bool
	ready, done := make(chan int), make(chan bool)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		var one unix.CPUSet
		one.Set(cpu)
		unix.SchedSetaffinity(0, &one)
		unix.Setpriority(unix.PRIO_PROCESS, 0, -20) // the machine is shared
		ready <- unix.Gettid()
		for !over.Load() {
		}
		close(done)
	}()
	t.Cleanup(func() { over.Store(true); <-done })
	return <-ready, cpu
}

// sampleOf asks for one sample of a CPU.
func sampleOf(t *testing.T, o *Objects, e *SampleEvent, wait time.Duration) (capture.Sample, bool) {
	t.Helper()
	if !o.Samples.Want(e.CPU) {
		t.Fatal("a sample cannot be asked for")
	}
	if err := e.Enable(); err != nil {
		t.Fatal(err)
	}
	defer e.Disable()
	for end := time.Now().Add(wait); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if s, ok := o.Samples.Take(e.CPU); ok {
			return s, true
		}
	}
	if !o.Samples.GiveUp(e.CPU) {
		return o.Samples.Take(e.CPU)
	}
	return capture.Sample{}, false
}

// A thread in user mode is found there, with its stack; and one sample is one.
func TestSampleOfASpinner(t *testing.T) {
	testneed.Lab(t, testneed.Scheduler)
	testneed.Slow(t)
	for _, redact := range []bool{false, true} {
		o := loadSampler(t, Config{Redact: redact})
		tid, cpu := spin(t)
		e, err := o.OpenSampleEvent(cpu)
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		found, spinning := 0, 0
		rounds := testneed.Length(50, 200)
		for range rounds { // others want the CPU too
			var now, end unix.Timespec
			unix.ClockGettime(unix.CLOCK_MONOTONIC, &now)
			s, ok := sampleOf(t, o, e, time.Second)
			unix.ClockGettime(unix.CLOCK_MONOTONIC, &end)
			if !ok {
				t.Fatal("no sample in a second")
			}
			if s.CPU != cpu || s.At < uint64(now.Nano()) || s.At > uint64(end.Nano()) {
				t.Errorf("CPU %d at %d, want CPU %d from %d to %d", s.CPU, s.At, cpu, now.Nano(), end.Nano())
			}
			if int(s.Tid) != tid || !s.User {
				continue
			}
			found++
			if int(s.Tgid) != os.Getpid() || s.Idle || len(s.Kernel) != 0 || !strings.HasPrefix("bpf.test", s.Comm) {
				t.Errorf("%+v", s)
			}
			f := runtime.FuncForPC(uintptr(s.IP))
			if f != nil { // not what was inlined into it
				f = runtime.FuncForPC(f.Entry())
			}
			if redact && len(s.UserStack) != 0 {
				t.Errorf("redacted, and a user stack of %d frames", len(s.UserStack))
			}
			if !redact && (len(s.UserStack) == 0 || s.UserStack[0] != s.IP) {
				t.Errorf("at %#x, user stack %#x", s.IP, s.UserStack)
			}
			if f == nil && inVDSO(t, s.IP) {
				continue // it asked the time
			}
			if f == nil {
				t.Fatalf("at %#x, which is none of our functions", s.IP)
			}
			if strings.Contains(f.Name(), "spin") {
				spinning++ // else in the scheduler of Go, on a slow machine
			}
		}
		if found == 0 || spinning*2 < found {
			t.Errorf("of %d samples %d on its CPU, %d of them in its loop", rounds, found, spinning)
		}
		if s, ok := o.Samples.Take(cpu); ok {
			t.Errorf("a sample that nobody asked for: %+v", s)
		}
	}
}

// Our own threads decline: the next tick may find another.
func TestSampleDeclinesItself(t *testing.T) {
	testneed.Lab(t, testneed.Scheduler)
	o := loadSampler(t, Config{SelfTgid: uint32(os.Getpid())})
	_, cpu := spin(t)
	e, err := o.OpenSampleEvent(cpu)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for range 50 {
		if s, ok := sampleOf(t, o, e, 10*time.Millisecond); ok && int(s.Tgid) == os.Getpid() {
			t.Fatalf("%+v", s)
		}
	}
}

// What was asked for and given up does not come later.
func TestSampleGivenUp(t *testing.T) {
	testneed.Lab(t, testneed.Scheduler)
	o := loadSampler(t, Config{})
	if !o.Samples.Want(0) || o.Samples.Want(0) || !o.Samples.GiveUp(0) || o.Samples.GiveUp(0) || o.Samples.Want(len(o.Samples)) {
		t.Error("a request is made once, taken back once")
	}
	if _, ok := o.Samples.Take(0); ok {
		t.Error("a sample without an event")
	}
	if _, err := o.OpenSampleEvent(1023); !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "CPU 1023") {
		t.Errorf("CPU 1023: %v", err)
	}
}

// inVDSO reports whether an address is in the kernel's own code for user mode.
func inVDSO(t *testing.T, ip uint64) bool {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(maps)) {
		var from, to uint64
		if strings.Contains(line, "[vdso]") {
			if _, err := fmt.Sscanf(line, "%x-%x", &from, &to); err != nil {
				t.Fatal(err)
			}
			return ip >= from && ip < to
		}
	}
	return false
}
