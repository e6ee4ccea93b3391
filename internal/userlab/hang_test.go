//go:build linux

package userlab

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
)

// Every case of hang.c stays as it is, and gdb reads the owners that it claims out of
// the locks.
func TestHangs(t *testing.T) {
	testneed.Lab(t, testneed.Witness)
	hangs := NewHangs(t)
	for _, name := range []string{"abba", "abba-recursive", "abba-errorcheck", "abba-robust", "cycle", "pi-chain",
		"crowd", "zombie-owner", "gone-owner", "robust-died", "holder", "condvar", "rw-writer", "rw-reader", "join", "traced"} {
		t.Run(name, func(t *testing.T) {
			h := hangs.Start(t, Glibc, name)
			time.Sleep(20 * time.Millisecond)
			h.Await(hangsIn(name))
			owners(t, h)
		})
	}
}

// owners holds the __owner of each lock, by /proc and by gdb, against the parts, in the
// numbers of their own namespace. gdb attaches to no process whose first thread ended.
func owners(t *testing.T, h *Hang) {
	t.Helper()
	edges := Edges(h.Case)
	var locks []string
	for _, e := range edges {
		locks = append(locks, e.Lock)
		if !strings.HasSuffix(e.Lock, "__owner") {
			continue
		}
		if got, err := h.OwnerWord(e.Waiter); err != nil || got != h.Parts[e.Owner].Inner {
			t.Errorf("word of %s: %d (%v), want %d, %s", h.Name, got, err, h.Parts[e.Owner].Inner, e.Owner)
		}
	}
	if len(edges) == 0 || Guest() || h.Case == "zombie-owner" {
		return
	}
	got, err := h.Values(edges[0].Waiter, locks...)
	if err != nil {
		t.Error(err)
		return
	}
	for i, e := range edges {
		if want := h.Parts[e.Owner].Inner; got[i] != want {
			t.Errorf("%s of %s: %d, want %d, %s", e.Lock, h.Name, got[i], want, e.Owner)
		}
	}
}

func TestHangsOfOtherLibraries(t *testing.T) {
	testneed.Lab(t, testneed.Witness)
	testneed.Slow(t)
	hangs := NewHangs(t)
	for _, name := range []string{"abba", "abba-recursive"} {
		for _, libc := range []Libc{Stripped, Musl} {
			if HasLibc(libc) {
				hangs.Start(t, libc, name)
			}
		}
	}
	if !Guest() {
		hangs.StartRust(t)
		hangs.StartGo(t)
	}
}

// In two nested pid namespaces the threads have the numbers that they are told to have,
// which are those of others here.
func TestNestedHang(t *testing.T) {
	testneed.Lab(t, testneed.Witness)
	hangs, inner := NewHangs(t), Namesakes(t, 4)
	for name, roles := range map[string][]string{"abba": {"a", "b", "behind"}, "pi-chain": {"t1", "t2", "t3", "t4"}} {
		h := hangs.StartNested(t, name, inner)
		for i, role := range roles {
			if p := h.Parts[role]; p.Inner != inner[i] || slices.Contains(inner, p.Tid) {
				t.Errorf("%s %s: %+v, want the inner number %d", name, role, p, inner[i])
			}
		}
		owners(t, h)
	}
}

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

// A frozen part is in the freezer, and in no system call's wait.
func TestFreeze(t *testing.T) {
	testneed.Lab(t, testneed.Witness)
	h := NewHangs(t).Start(t, Glibc, "holder")
	h.Freeze("holder")
	time.Sleep(20 * time.Millisecond)
	if stack, err := kernelStack(h.Parts["holder"].Pid, h.Parts["holder"].Tid); err != nil || !slices.Contains(stack, "do_freezer_trap") && !slices.Contains(stack, "get_signal") {
		t.Errorf("kernel stack of the frozen part %v (%v)", stack, err)
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
