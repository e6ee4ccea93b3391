package snapshot

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"stackshot/internal/bpf"
	"stackshot/internal/clock"
	"stackshot/internal/engine"
	"stackshot/internal/engine/proc"
	"stackshot/internal/procfs"
	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
	"stackshot/internal/timens"
	"stackshot/kcdata"
)

const timensEnv = "STACKSHOT_TEST_TIMENS" // engine,file

// In a time namespace, ahead of the machine's clocks or behind them, a stop keeps
// its budgets, though a CPU comes late; all times of the file are the machine's; and
// processes are still known by their start times.
func TestInvariant2TimeNamespace(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	testneed.Slow(t)
	requireBPF(t)
	requireTwoCPUs(t)
	if asked := os.Getenv(timensEnv); asked != "" {
		engine, file, _ := strings.Cut(asked, ",")
		takeInTimeNamespace(t, engine, file)
		return
	}
	engines := append(slices.Clone(stoppingEngines), EngineProcfs)
	for i, engine := range engines {
		for j, ahead := range []time.Duration{100_000 * time.Second, -30 * time.Second} {
			if i%2 != j && !testneed.Length(false, true) {
				continue // in short, one clock for each engine
			}
			t.Run(fmt.Sprint(engine, ahead), func(t *testing.T) {
				if engine == EngineTrap {
					requireTrap(t)
				}
				heldAgainstTheMachine(t, engine, ahead)
			})
		}
	}
}

// heldAgainstTheMachine has a process of the namespace make a file, and compares
// it with the clocks out here.
func heldAgainstTheMachine(t *testing.T, engine string, ahead time.Duration) {
	file := filepath.Join(t.TempDir(), "file")
	cmd := exec.Command(os.Args[0], "-test.run=^TestInvariant2TimeNamespace$", "-test.v")
	cmd.Env = append(os.Environ(), timensEnv+"="+engine+","+file)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	before := clock.Now()
	if int64(before.Monotonic) < -int64(ahead) {
		t.Skipf("the machine is up for %v only", time.Duration(before.Monotonic))
	}
	if err := testtask.StartInTimeNamespace(cmd, ahead, ahead+7*time.Hour); err != nil {
		if _, none := os.Stat("/proc/self/ns/time"); none == nil {
			t.Fatal(err)
		}
		t.Skip("this kernel has no time namespaces: ", err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	if strings.Contains(out.String(), "--- SKIP") {
		t.Skipf("in the namespace: %s", out.String())
	}
	after := clock.Now()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	snap, err := parse(t, b)
	if err != nil || len(snap.Problems) > 0 {
		t.Fatal(err, snap.Problems)
	}
	within := func(what string, at, from, to uint64) {
		if at < from || at > to {
			t.Errorf("%s is %d, want %d to %d", what, at, from, to)
		}
	}
	within("the machine's monotonic clock", snap.Machine.MonotonicNs, before.Monotonic, after.Monotonic)
	within("the machine's boot clock", snap.Machine.BoottimeNs, before.Boottime, after.Boottime)
	if engine != EngineProcfs {
		within("the stop", snap.Capture.StopNs, before.Monotonic, after.Monotonic)
		for _, c := range snap.CPUs {
			if c.Flags&kcdata.CPUStopped != 0 {
				within("an arrival", c.ArriveNs, before.Monotonic, after.Monotonic)
				within("a release", c.ReleaseNs, before.Monotonic, after.Monotonic)
			}
		}
	}
	if f := snap.FilesTaken; engine != EngineProcfs && (f == nil || f.Looked == 0 || f.Flags&kcdata.FilesTimeUp != 0) {
		t.Errorf("the look for the other ends of files had no time: %+v", f)
	}
	wantSelf(t, snap)
}

// wantSelf: this process is there with its start time, and what only /proc tells
// was taken for its own.
func wantSelf(t *testing.T, snap *kcdata.Snapshot) {
	t.Helper()
	st, err := procfs.FS{}.Stat(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	task := tasksByID(snap)[uint64(os.Getpid())]
	if task == nil {
		t.Fatal("this process is not in the file")
	}
	if !st.StartedAt(task.Linux.StartBoottime) {
		t.Errorf("started at %d ns, /proc says %d ticks", task.Linux.StartBoottime, st.StartTime)
	}
	m := clock.Now()
	if at, want := int64(task.Snapshot.StartSec), int64(m.Realtime-m.Boottime+st.StartBoottime())/proc.Second; at < want-2 || at > want+2 {
		t.Errorf("started %d s after the epoch, want %d", at, want)
	}
	if len(task.EnrichFailed) > 0 || len(task.Cmdline) == 0 || task.ExePath == "" {
		t.Errorf("command line %q, executable %q, not read: %q", task.Cmdline, task.ExePath, task.EnrichFailed)
	}
}

// takeInTimeNamespace stops the machine twice: whole, and with a CPU that comes
// fifty budgets late.
func takeInTimeNamespace(t *testing.T, engineName, file string) {
	const budget, late, pause = 4 * time.Millisecond, 200 * time.Millisecond, 30 * time.Millisecond
	delay := time.Duration(0)
	s := openTest(t, Options{Engine: engineName, ArrivalBudget: budget, MaxPause: pause}, engine.Hooks{BeforeArrival: func(cpu int) {
		for until := clock.Nanotime() + int64(delay); cpu == 1 && clock.Nanotime() < until; {
		}
	}})
	_, _, b := captureWhole(t, s, Request{})
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if engineName == EngineProcfs || timeFactor > 1 {
		return // nothing stops, or an emulated CPU is later than that by itself
	}
	delay = late
	const bound = budget + pause + 20*time.Millisecond
	despiteTheHost(t, func() error {
		r, _, err := s.takeParsed()
		if err != nil {
			return err
		}
		if !slices.Contains(r.CPUs.Missing, 1) || r.Stopped > bound {
			return fmt.Errorf("CPU 1 late by %v: missing %v, stopped for %v", late, r.CPUs.Missing, r.Stopped)
		}
		return nil
	})
}

// A clock that is not what it is taken for: no engine stops the machine by it, and
// there is a result that says why.
func TestInvariant2ClockThatDiffers(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	testneed.Slow(t)
	requireBPF(t)
	// The least is more than the probe takes, within which nothing can be told.
	for _, off := range []time.Duration{time.Hour, -time.Hour, slow(10 * time.Millisecond)} {
		was := timens.Monotonic
		timens.Monotonic += int64(off)
		s, err := Open(Options{Engine: EngineAuto})
		_, trapErr := Open(Options{Engine: EngineTrap})
		_, pullErr := Open(Options{Engine: EnginePull})
		timens.Monotonic = was
		if err != nil {
			t.Fatal(err)
		}
		r, _, err := s.takeParsed()
		if err != nil || r.Engine != EngineProcfs || !slices.ContainsFunc(r.Warnings, func(w kcdata.Warning) bool {
			return w.Code == "engine_procfs" && strings.Contains(w.Text, "CLOCK_MONOTONIC")
		}) {
			t.Errorf("a clock off by %v: %v, %+v", off, err, r)
		}
		if !errors.Is(trapErr, bpf.ErrUnsupported) || !errors.Is(pullErr, bpf.ErrUnsupported) {
			t.Errorf("a clock off by %v: trap %v, pull %v", off, trapErr, pullErr)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
