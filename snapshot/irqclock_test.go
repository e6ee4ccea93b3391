package snapshot

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"stackshot/internal/bpf"
	"stackshot/internal/engine"
	"stackshot/internal/engine/trap"
	"stackshot/internal/testneed"
	"stackshot/kcdata"
)

func TestJiffiesClock(t *testing.T) {
	for source, refused := range map[string]bool{
		"tsc\n": false, "acpi_pm\n": false, "arch_sys_counter\n": false, "": false,
		"jiffies\n": true, "refined-jiffies\n": true, "jiffies": true,
	} {
		if err := JiffiesClock(source); (err != nil) != refused || refused && !errors.Is(err, bpf.ErrUnsupported) {
			t.Errorf("clock source %q: %v", source, err)
		}
	}
}

func TestIRQOffBound(t *testing.T) {
	for thresh, want := range map[string]time.Duration{
		"10\n": 2 * time.Second, "60\n": 2 * time.Second, "4\n": 2 * time.Second, "3\n": 1500 * time.Millisecond,
		"1\n": 500 * time.Millisecond, "0\n": 2 * time.Second, "": 2 * time.Second, "-1": 2 * time.Second,
	} {
		if got := IRQOffBound(thresh); got != want {
			t.Errorf("watchdog_thresh %q: %v, want %v", thresh, got, want)
		}
	}
}

// A pause that is too long for interrupts off is cut, and the file says so.
func TestInvariant2PauseIsBound(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	testneed.Slow(t)
	requireTrap(t)
	s := session(t, Options{Engine: EngineTrap, MaxPause: time.Minute})
	thresh, _ := os.ReadFile(watchdogPath)
	want := IRQOffBound(string(thresh))
	if s.engine.Caps().Isolation != IsolationIRQOff {
		want = time.Minute
	}
	r, snap, _ := captureWhole(t, s, Request{})
	if got := time.Duration(snap.Capture.MaxPauseNs); got != want || s.options.MaxPause != want {
		t.Errorf("at most %v in the file, %v in the session, want %v", got, s.options.MaxPause, want)
	}
	if said := hasWarning(r, "max_pause_bound") && hasCode(snap, "max_pause_bound"); said != (want != time.Minute) {
		t.Errorf("warnings %v", r.Warnings)
	}
}

// On a machine that keeps time by jiffies, auto stops it the other way and says
// why; the trap alone is refused. With the refusal off, and a CPU that is late to
// hold still while the other, which counts the jiffies, has its interrupts off, the
// waits end all the same. Layout jiffies has such a machine.
func TestInvariant2JiffiesMachine(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	requireBPF(t)
	requireTwoCPUs(t)
	source, err := os.ReadFile(trap.ClockSourcePath)
	if err != nil || JiffiesClock(string(source)) == nil {
		t.Skipf("needs a machine that keeps time by jiffies, this one has %q", strings.TrimSpace(string(source)))
	}
	if _, err := Open(Options{Engine: EngineTrap}); !errors.Is(err, bpf.ErrUnsupported) || !strings.Contains(err.Error(), "jiffies") {
		t.Errorf("engine trap: %v", err)
	}
	s := session(t, Options{Engine: EngineAuto})
	r, snap, _ := captureOnce(t, s, Request{})
	if r.Engine != EnginePull || len(snap.Tasks) < 10 || !slices.ContainsFunc(snap.Warnings, func(w kcdata.Warning) bool {
		return w.Code == "engine_pull" && strings.Contains(w.Text, "jiffies")
	}) {
		t.Errorf("engine %s, %d tasks, warnings %v", r.Engine, len(snap.Tasks), snap.Warnings)
	}
	for late := range 2 {
		h := lateHold(func(cpu int) time.Duration { return time.Duration(flagInt(cpu == late)) * 500 * time.Millisecond })
		h.AnyClock = true
		odd := openTest(t, Options{Engine: EngineTrap, ArrivalBudget: time.Second, MaxPause: time.Second}, h)
		began := time.Now()
		r, _, err := odd.takeParsed()
		took := time.Since(began)
		t.Logf("CPU %d late: %v, %v", late, took, err)
		if took > time.Minute {
			t.Errorf("CPU %d late: the capture took %v", late, took)
		}
		if err != nil && !errors.Is(err, engine.ErrNotStopped) || err == nil && r.Tasks < 10 {
			t.Errorf("CPU %d late: %+v, %v", late, r, err)
		}
	}
}
