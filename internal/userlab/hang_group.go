//go:build linux

package userlab

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
)

// Namesakes are n threads that sleep in this pid namespace: their numbers are for
// [Hangs.StartNested].
func Namesakes(tb testing.TB, n int) []int {
	tb.Helper()
	return testtask.Start(tb, testtask.ManyThreads(n)).Children[0].Tids
}

// Freeze puts the process of a role into a control group of its own and freezes that.
// The end of the hang removes the group.
func (h *Hang) Freeze(role string) {
	h.tb.Helper()
	root := unifiedRoot()
	if root == "" {
		testneed.Lacking(h.tb, "needs the second version's hierarchy of control groups")
	}
	dir, err := os.MkdirTemp(root, "stackshot-hang-")
	if err != nil {
		h.tb.Fatalf("userlab: %v", err)
	}
	// SIGKILL ends what is frozen in this version. When all members are gone:
	h.after = append(h.after, func() {
		if err := testtask.WaitFor(endTime, func() (bool, error) { return os.Remove(dir) == nil, nil }); err != nil {
			h.tb.Errorf("userlab: control group %s: %v", dir, err)
		}
	})
	if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), fmt.Append(nil, h.Parts[role].Pid), 0); err != nil {
		h.tb.Fatalf("userlab: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "cgroup.freeze"), []byte("1"), 0); err != nil {
		h.tb.Fatalf("userlab: %v", err)
	}
	err = testtask.WaitFor(endTime, func() (bool, error) {
		b, err := os.ReadFile(filepath.Join(dir, "cgroup.events"))
		return bytes.Contains(b, []byte("frozen 1")), err
	})
	if err != nil {
		h.tb.Fatalf("userlab: %s of %s does not freeze: %v", role, h.Name, err)
	}
	h.Await(h.with(role, waitsIn("SDT", "do_freezer_trap", "get_signal")))
}

// unifiedRoot is where the second version's hierarchy is mounted; "": nowhere.
func unifiedRoot() string {
	mounts, _ := os.ReadFile("/proc/self/mounts")
	for line := range strings.Lines(string(mounts)) {
		if f := strings.Fields(line); len(f) > 2 && f[2] == "cgroup2" {
			return f[1]
		}
	}
	return ""
}

// voluntarySwitches are those of each thread of a process since it began.
func voluntarySwitches(pid int) (map[int]uint64, error) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("no threads: %w", err)
	}
	n := map[int]uint64{}
	for _, name := range slices.Sorted(slices.Values(files)) {
		b, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		var tid int
		var count uint64
		_, rest, _ := strings.Cut(string(b), "\nvoluntary_ctxt_switches:")
		if _, err := fmt.Sscan(rest, &count); err != nil {
			return nil, err
		}
		if _, err := fmt.Sscan(filepath.Base(filepath.Dir(name)), &tid); err != nil {
			return nil, err
		}
		n[tid] = count
	}
	return n, nil
}
