//go:build linux

package userlab

import (
	"testing"
)

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
