//go:build linux

package userlab

import (
	"fmt"
	"testing"

	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
)

// Nothing of a nested case lives longer than its test, and neither does a traced one or
// one that is stopped or frozen.
func TestHangsEnd(t *testing.T) {
	testneed.Lab(t, testneed.Witness)
	hangs := NewHangs(t)
	nested := hangs.StartNested(t, "abba", Namesakes(t, 3))
	traced := hangs.Start(t, Glibc, "traced")
	stopped := hangs.Start(t, Glibc, "holder")
	stopped.StopPart("holder")
	frozen := hangs.Start(t, Glibc, "holder")
	frozen.Freeze("holder")
	for _, h := range []*Hang{nested, traced, stopped, frozen} {
		h.Close()
		gone(t, h.Members)
	}
}

// The healthy program's threads all go on: each runs again and again.
func TestHealthyHang(t *testing.T) {
	testneed.Lab(t, testneed.Witness)
	h := NewHangs(t).Start(t, Glibc, "healthy")
	before := switches(t, h.Pid)
	err := testtask.WaitFor(endTime, func() (bool, error) {
		for tid, n := range switches(t, h.Pid) {
			if tid != h.Pid && n < before[tid]+3 {
				return false, nil
			}
		}
		return true, nil
	})
	if err != nil || len(before) != 65 {
		t.Errorf("%d threads, and not all go on: %v", len(before), err)
	}
}

func switches(t *testing.T, pid int) map[int]uint64 {
	t.Helper()
	n, err := voluntarySwitches(pid)
	if err != nil {
		t.Fatal(fmt.Errorf("switches of %d: %w", pid, err))
	}
	return n
}
