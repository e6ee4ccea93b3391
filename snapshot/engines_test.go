package snapshot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"

	"stackshot/internal/bpf"
	"stackshot/internal/bpf/bpftest"
	"stackshot/internal/engine"
	"stackshot/internal/engine/trap"
	"stackshot/internal/host"
	"stackshot/internal/procfs"
	"stackshot/internal/testneed"
	"stackshot/kcdata"
)

// requireTrap skips a test where the kernel itself says that it has not what
// the trap needs. That the trap is refused all the same is a failure.
func requireTrap(tb testing.TB) {
	tb.Helper()
	requireBPF(tb)
	if p, lacking := bpf.FirstMissing(bpf.NeedTrap); lacking && p.Lacks() {
		tb.Skip(p)
	}
	if err := trap.CheckSource(&engine.Hooks{}); err != nil {
		tb.Skipf("needs a clock that goes on by itself (else TestInvariant2JiffiesMachine): %v", err)
	}
}

func trapHere() bool {
	_, lacking := bpf.FirstMissing(bpf.NeedTrap)
	return !lacking
}

// bestLevel is the isolation that the probes promise.
func bestLevel() string {
	if _, lacking := bpf.FirstMissing(bpf.NeedIRQOff); !lacking {
		return IsolationIRQOff
	}
	if _, lacking := bpf.FirstMissing(bpf.NeedPreemptOff); !lacking {
		return IsolationPreemptOff
	}
	return IsolationFIFO
}

// Where the kernel has the trap auto takes it, at the level it says before the
// first capture, with the pause that belongs to the level.
func TestAutoTakesTheTrap(t *testing.T) {
	testneed.Smoke(t)
	testneed.Slow(t)
	requireTrap(t)
	s := ownSession(t, Options{})
	if s.engine.Caps().Name != EngineTrap || s.engine.Caps().Isolation != bestLevel() {
		t.Errorf("engine %s, isolation %s before the first capture, want trap, %s", s.engine.Caps().Name, s.engine.Caps().Isolation, bestLevel())
	}
	res, snap, _ := captureWhole(t, s, Request{})
	if res.Engine != EngineTrap || snap.Engine != EngineTrap || snap.Isolation != bestLevel() {
		t.Errorf("engine %s, in the file %s, isolation %s", res.Engine, snap.Engine, snap.Isolation)
	}
	if want := s.options.MaxPause; snap.Capture.MaxPauseNs != uint64(want) {
		t.Errorf("max_pause_ns %d at %s, want %v", snap.Capture.MaxPauseNs, bestLevel(), want)
	}
	for _, w := range res.Warnings {
		if strings.HasPrefix(w.Code, "engine_") || w.Code == "fifo_refused" || w.Code == "isolation_none" {
			t.Errorf("nothing was refused: %+v", w)
		}
	}
}

// The pause that was asked for is the one used; what was not asked for depends
// on how still the machine stands.
func TestDefaultPause(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	needsRealCPUs(t) // emulated ones need longer
	requireBPF(t)
	for _, c := range []struct {
		o    Options
		want time.Duration
	}{
		{Options{Engine: EnginePull}, 250 * time.Millisecond},
		{Options{Engine: EngineProcfs}, 250 * time.Millisecond},
		{Options{MaxPause: 77 * time.Millisecond}, 77 * time.Millisecond},
	} {
		c.o.LockWait, c.o.ArrivalBudget = testneed.Patience, time.Second
		s, err := Open(c.o) // session has longer defaults
		if err != nil {
			t.Fatal(err)
		}
		if _, snap, _ := captureOnce(t, s, Request{Pids: []int{os.Getpid()}}); snap.Capture.MaxPauseNs != uint64(c.want) {
			t.Errorf("%+v: max_pause_ns %d", c.o, snap.Capture.MaxPauseNs)
		}
		s.Close()
	}
	for level, want := range map[string]time.Duration{
		IsolationIRQOff: 100 * time.Millisecond, IsolationPreemptOff: 250 * time.Millisecond,
		IsolationFIFO: 250 * time.Millisecond, IsolationNone: 250 * time.Millisecond,
	} {
		if got := pauseFor(level); got != want {
			t.Errorf("%s: %v", level, got)
		}
	}
}

// Without the numbers of the first pid namespace the trap is refused: auto goes
// on with pull and says why, or, where memory is short, with procfs.
func TestAutoWithoutTheTrap(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	if !inChild(t, &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS}) {
		return
	}
	hideProc(t)
	var file bytes.Buffer
	r, err := Take(context.Background(), patient(t, Options{}), Request{Output: &file})
	if err != nil {
		t.Fatal(err)
	}
	snap, err := parse(t, file.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if r.Engine != EnginePull || snap.Engine != EnginePull || !strings.Contains(textOf(r.Warnings, "engine_pull"), "pid namespace") && trapHere() {
		t.Errorf("engine %s, in the file %s, warnings %+v", r.Engine, snap.Engine, r.Warnings)
	}
	s, e := bestUnderPressure(t)
	if e.Caps().Name != EngineProcfs || !strings.Contains(textOf(s.warnings, "memory_pressure"), "engine trap") {
		t.Errorf("engine %s under memory pressure, warnings %+v", e.Caps().Name, s.warnings)
	}
	if c, err := Try(EngineTrap); err == nil {
		t.Errorf("the trap opens: %+v", c)
	}
	if c, err := Try(EngineAuto); err != nil || c.Engine != EnginePull || c.Isolation != IsolationFIFO || textOf(c.Warnings, "engine_pull") == "" {
		t.Errorf("%+v, %v", c, err)
	}
}

// The trap allocates nothing while it holds the machine, so it is right under
// memory pressure too.
func TestMemoryPressureKeepsTheTrap(t *testing.T) {
	testneed.Live(t)
	requireTrap(t)
	if s, e := bestUnderPressure(t); e.Caps().Name != EngineTrap || len(s.warnings) != 0 {
		t.Errorf("engine %s, warnings %+v", e.Caps().Name, s.warnings)
	}
}

// bestUnderPressure is what auto takes of a machine that has 1 MiB left.
func bestUnderPressure(t *testing.T) (*Session, engine.Engine) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "meminfo"), []byte("MemAvailable: 1024 kB\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o, err := Options{}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	plan, err := planCPUs(o)
	if err != nil {
		t.Fatal(err)
	}
	s := &Session{options: o, plan: plan, machine: procfs.FS{Root: dir}, host: &host.Host{}}
	s.bestEngine()
	t.Cleanup(func() {
		if err := errors.Join(s.engine.Close(), s.closeTeam()); err != nil {
			t.Error(err)
		}
	})
	return s, s.engine
}

// A program that was left out is named under every engine that would use it, and under no other.
func TestMissingProgramsAreNamed(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	requireTrap(t)
	for _, name := range []string{EngineTrap, EnginePull} {
		s := openTest(t, Options{Engine: name}, engine.Hooks{Specs: pullRefused{bpftest.Knobs{}, "record_idle"}})
		if got := textOf(s.engine.Caps().Warnings, "program_missing"); strings.Contains(got, " record_idle: ") != (name == EnginePull) {
			t.Errorf("%s: %q", name, got)
		}
		missing := &s.team.Objects.Missing
		*missing = append(*missing, bpf.Missing{Program: "on_switch", Why: unix.EPERM})
		if got := textOf(s.engine.Caps().Warnings, "program_missing"); got != "this kernel refuses the BPF program on_switch: "+unix.EPERM.Error() {
			t.Errorf("%s: %q", name, got)
		}
		s.Close()
	}
}

// pullRefused has objects that are as ever, but for a program of engine pull: the kernel refuses it.
type pullRefused struct {
	bpf.Specs
	program string
}

func (r pullRefused) Pull() (*ebpf.CollectionSpec, error) {
	spec, err := r.Specs.Pull()
	if err == nil {
		spec.Programs[r.program].Instructions = asm.Instructions{asm.Return()} // what, nobody has said
	}
	return spec, err
}

// The trap needs no program of engine pull. Who asks for that one hears what is refused.
func TestTrapWithoutPull(t *testing.T) {
	testneed.Live(t)
	requireTrap(t)
	h := engine.Hooks{Specs: pullRefused{bpftest.Knobs{}, "record_task"}}
	s := openTest(t, Options{Engine: EngineAuto}, h)
	if name := s.engine.Caps().Name; name != EngineTrap || strings.Contains(fmt.Sprint(s.warnings), "record_") {
		t.Errorf("engine %s, warnings %+v", name, s.warnings)
	}
	o := s.options
	o.Engine = EnginePull
	if s, err := open(o, h); !errors.Is(err, bpf.ErrUnsupported) || !strings.Contains(err.Error(), "engine pull: ") || !strings.Contains(err.Error(), "record_task") {
		t.Errorf("%v, want that record_task is refused", err)
		if err == nil {
			s.Close()
		}
	}
}

func textOf(list []kcdata.Warning, code string) string {
	for _, w := range list {
		if w.Code == code {
			return w.Text
		}
	}
	return ""
}
