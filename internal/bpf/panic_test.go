package bpf

import (
	"errors"
	"os"
	"runtime"
	"testing"
	"time"

	"stackshot/internal/testneed"
	"stackshot/kcdata"
)

// armedForTest loads and attaches the panic programs, with all that they can record. It skips where
// the kernel has neither fentry nor kprobes.
func armedForTest(t *testing.T) *Panic {
	t.Helper()
	m, err := FindDirectMap()
	mustLoad(t, err)
	cfg := Config{CPUs: runtime.NumCPU(), SelfTgid: uint32(os.Getpid()), Waits: waitsAnywhere,
		User: UserStacks{Mode: UserAuto, Frames: 256, Bytes: 24 << 10, Memory: m}}
	x, err := LoadPanic(cfg, PanicConfig{At: 4096, Records: 16 << 20, Pause: 20 * time.Second, Key: 'y', Sysrq: true, Panic: true})
	if errors.Is(err, ErrUnsupported) {
		t.Skip("needs fentry or kprobes: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	})
	return x
}

// press asks for a capture and waits for its end.
func press(t *testing.T, x *Panic) {
	t.Helper()
	if err := os.WriteFile("/proc/sysrq-trigger", []byte("y"), 0); err != nil {
		t.Fatal(err)
	}
	if err := x.AwaitUntil(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
}

// The panic programs load and attach where the kernel has what they hook, verified in few
// instructions, and a SysRq is answered by one walk: the records are whole KCData, nobody
// is there twice, and a second SysRq waits until the region is free. The figures are part of
// the output.
func TestPanicHooks(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	testneed.Root(t)
	x := armedForTest(t)
	for _, h := range x.Hooks {
		t.Logf("%s: %s/%s, %d verified, loaded in %v", h.Event, h.By, h.Function, h.Verified, h.Load.Round(time.Millisecond))
		if h.Err != nil || h.Verified > 200_000 {
			t.Errorf("%s: %d instructions verified, %v", h.Event, h.Verified, h.Err)
		}
	}
	press(t, x)
	r := x.Run
	if r.State != PanicDone || r.Hook != 1 || r.Outcome != 1 || r.Key != 'y' || r.Open != 0 || r.Nested != 0 || r.Lost != 0 {
		t.Errorf("%+v", r)
	}
	t.Logf("level %d, %d tasks, %d threads, %d idle, %d bytes, %v", r.Level, r.Tasks, r.Threads, r.Idle, r.Bytes, time.Duration(r.Ended-r.Began))
	if int(r.Idle) != runtime.NumCPU() {
		t.Errorf("%d idle threads, %d CPUs", r.Idle, runtime.NumCPU())
	}
	tasks, threads := decodedRun(t, x)
	if tasks != int(r.Tasks) || threads != int(r.Threads) {
		t.Errorf("%d tasks, %d threads decoded; %d and %d counted", tasks, threads, r.Tasks, r.Threads)
	}
	if os.WriteFile("/proc/sysrq-trigger", []byte("y"), 0); r.Nested != 1 {
		t.Errorf("a second SysRq was counted %d times", r.Nested)
	}
}

// decodedRun counts what a walk left, and fails if a thread is there twice.
func decodedRun(t *testing.T, x *Panic) (tasks, threads int) {
	t.Helper()
	w, bytes := kcdata.NewSticky()
	w.Note(w.Begin(kcdata.MagicStackshot))
	file := append(bytes(), x.Region[4096:4096+x.Run.Bytes]...)
	end, bytes := kcdata.NewSticky()
	end.Note(end.End())
	s, err := kcdata.ParseSnapshot(append(file, bytes()...))
	if err != nil || len(s.Problems) > 0 {
		t.Fatal(err, s.Problems)
	}
	seen := map[uint32]bool{}
	for _, k := range s.Tasks {
		for _, h := range k.Threads {
			threads++
			if tid := h.Linux.Tid; tid != 0 && seen[tid] {
				t.Errorf("thread %d is there twice", tid)
			} else {
				seen[tid] = true
			}
		}
	}
	return len(s.Tasks), threads
}
