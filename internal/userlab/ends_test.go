//go:build linux

package userlab

import (
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
)

// The processes that are to be healthy go on: nobody has an error, and those that work run
// again and again. In queues each stands behind another, and the last sleeps for a time.
func TestHealthyEnds(t *testing.T) {
	testneed.Lab(t, testneed.Witness)
	testneed.Slow(t)
	hangs := NewHangs(t)
	for _, name := range slices.Sorted(maps.Keys(Healthy())) {
		t.Run(name, func(t *testing.T) {
			h := hangs.StartHealthy(t, name, Healthy()[name])
			if name == "queues" {
				if h.Await(endsIn(spread(Healthy()[name]))); h.Log() != "" {
					t.Error(h.Log())
				}
				return
			}
			before := map[string]uint64{}
			n := func(role string) uint64 { return switches(t, h.Parts[role].Pid)[h.Parts[role].Tid] }
			works := slices.DeleteFunc(slices.Sorted(maps.Keys(h.Parts)), func(role string) bool {
				return strings.HasPrefix(role, "idle") || strings.HasPrefix(role, "pool") || role == "late" || role == "next" || role == "main"
			})
			for _, role := range works {
				before[role] = n(role)
			}
			err := testtask.WaitFor(endTime, func() (bool, error) {
				return !slices.ContainsFunc(works, func(role string) bool { return n(role) < before[role]+3 }), nil
			})
			if err != nil || len(works) < 2 || h.Log() != "" {
				t.Errorf("of %v not all go on: %v %s", works, err, h.Log())
			}
		})
	}
}

// What a case of ends.c makes ends with its test, mounts too.
func TestEndsEnd(t *testing.T) {
	testneed.Lab(t, testneed.Witness)
	hangs := NewHangs(t)
	steps := map[string][]string{
		"nested":  {"all pidns", "all netns", "all pidns", "all pair x y unix", "a read x", "b read y"},
		"stopped": {"all pipe p", "a has p.w", "a stop", "b read p.r"},
	}
	if _, err := os.Stat("/dev/fuse"); err == nil {
		steps["fuse"] = []string{"server fuse m", "server serve m read nap", "binder bind-mount m b", "binder nap", "w*2 open f b/file", "w*2 read f"}
	}
	for name, s := range steps {
		var h *Hang
		t.Run(name, func(t *testing.T) { h = hangs.StartEnds(t, name, s) })
		gone(t, h.Members)
		if _, err := os.Lstat(h.Dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %s: %v", name, h.Dir, err)
		}
	}
}

// The steps of a group are those of each of its roles.
func TestSpread(t *testing.T) {
	got := spread([]string{"a pipe p", "w*2 read p.r", "b has p.w*2"})
	if want := []string{"a pipe p", "w0 read p.r", "w1 read p.r", "b has p.w*2"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
