package topology

import (
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A narrow affinity can be widened, so it is no limit: a process started under
// taskset, here this test again, is allowed what its parent is. Asking leaves
// the asking thread's affinity alone.
func TestAllowedLooksPastTaskset(t *testing.T) {
	const childEnv = "TOPOLOGY_TEST_ALLOWED"
	wide, err := Allowed()
	if err != nil {
		t.Fatal(err)
	}
	if parent := os.Getenv(childEnv); parent != "" {
		if got := FormatCPUList(wide); got != parent || runtime.NumCPU() != 1 {
			t.Errorf("under taskset to %d CPU: %s, without: %s", runtime.NumCPU(), got, parent)
		}
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, one, after unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		t.Fatal(err)
	}
	defer unix.SchedSetaffinity(0, &before)
	one.Set(wide[0])
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestAllowedLooksPastTaskset$")
	cmd.Env = append(os.Environ(), childEnv+"="+FormatCPUList(wide))
	if out, err := cmd.CombinedOutput(); err != nil { // inherits this thread's affinity
		t.Errorf("%v: %s", err, out)
	}
	if _, err := Allowed(); err != nil {
		t.Error(err)
	}
	if err := unix.SchedGetaffinity(0, &after); err != nil || after != one {
		t.Errorf("own affinity became %v, %v", after, err)
	}
}

// The machine at hand, against /proc/stat and its own affinity.
func TestRealMachine(t *testing.T) {
	top, err := Machine()
	if err != nil {
		t.Fatal(err)
	}
	checkTopology(t, top)
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Count(string(stat), "\ncpu")
	if got := len(top.Online()); got != lines {
		t.Errorf("%d online CPUs, /proc/stat has %d", got, lines)
	}
	allowed, err := Allowed()
	if err != nil {
		t.Fatal(err)
	}
	// NumCPU is the affinity at the start, which the limit includes.
	if len(allowed) < runtime.NumCPU() || len(intersect(allowed, top.Online())) != len(allowed) {
		t.Errorf("allowed %v of online %v, NumCPU %d", allowed, top.Online(), runtime.NumCPU())
	}
	p, err := top.Plan(Options{Allowed: allowed, StopIsolated: true})
	if err != nil {
		t.Fatal(err)
	}
	checkPlan(t, p)
	if !slices.Equal(p.Stop, allowed) {
		t.Errorf("stop %v, allowed %v", p.Stop, allowed)
	}
}
