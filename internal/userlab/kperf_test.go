//go:build linux

package userlab

import (
	"slices"
	"testing"

	"stackshot/internal/testneed"
)

func TestExpected(t *testing.T) {
	got := Kperf{Depth: 3}.Expected()
	if want := []string{"leaf_blocked", "recurse_a", "recurse_b", "recurse_a", "kperf_thread"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if n := len(Kperf{Depth: 300, Spin: true}.Expected()); n != 302 {
		t.Errorf("%d functions, want 302", n)
	}
}

func named(names ...string) []Frame {
	var fs []Frame
	for _, n := range names {
		fs = append(fs, fr(1, n))
	}
	return fs
}

func TestKperfCheck(t *testing.T) {
	k := Kperf{Depth: 2}
	for _, tt := range []struct {
		name  string
		stack []Frame
		limit int
		ok    bool
	}{
		{"whole", named("pause", "leaf_blocked", "recurse_b", "recurse_a", "kperf_thread", "start_thread", "clone3"), 0, true},
		{"ends at the first", named("pause", "leaf_blocked", "recurse_b", "recurse_a", "kperf_thread"), 0, true},
		{"leaf lost", named("pause", "recurse_b", "recurse_a", "kperf_thread"), 0, false},
		{"no pause", named("leaf_blocked", "recurse_b", "recurse_a", "kperf_thread"), 0, false},
		{"one twice", named("pause", "leaf_blocked", "recurse_b", "recurse_b", "recurse_a", "kperf_thread"), 0, false},
		{"short", named("pause", "leaf_blocked", "recurse_b", "recurse_a"), 0, false},
		{"cut", named("pause", "leaf_blocked", "recurse_b"), 3, true},
		{"cut too early", named("pause", "leaf_blocked"), 3, false},
		{"beyond the limit", named("pause", "leaf_blocked", "recurse_b", "recurse_a"), 3, false},
		{"goes on", named("pause", "leaf_blocked", "recurse_b", "recurse_a", "kperf_thread", "recurse_a"), 0, false},
		{"empty", nil, 0, false},
	} {
		if err := k.Check(tt.stack, tt.limit); (err == nil) != tt.ok {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// gdb finds in each program what Expected says, all frames from its tables.
func TestKperfIsAsExpected(t *testing.T) {
	testneed.Lab(t, testneed.Witness)
	testneed.Slow(t)
	testneed.Program(t, "gdb")
	for _, f := range []Frames{FramePointers, NoFramePointers, MixedFrames} {
		for _, spin := range []bool{false, true} {
			p := StartKperf(t, Kperf{Frames: f, Depth: 12, Spin: spin})
			p.Stop()
			threads, err := Witness(p.Pid)
			if err != nil {
				t.Fatal(err)
			}
			i := slices.IndexFunc(threads, func(w Thread) bool { return w.Tid == p.Tid })
			if i < 0 {
				t.Fatalf("%v: no thread %d in %v", p, p.Tid, threads)
			}
			if err := p.Check(threads[i].Frames, 0); err != nil || threads[i].Error != "" {
				t.Error(err, threads[i].Error)
			}
			p.Close()
		}
	}
}
