package main

import (
	"strings"
	"testing"
	"time"

	"stackshot/internal/hanglab"
	"stackshot/internal/testneed"
)

// TestHangWithoutNames: the words in memory alone tell the locks of the C libraries, whose
// deadlocks stay sure, from those of Rust and Go.
func TestHangWithoutNames(t *testing.T) {
	testneed.Lab(t, testneed.Machine)
	testneed.Slow(t)
	lab := hanglab.New(t)
	var all []*hanglab.Running
	for _, c := range hanglab.Cases() {
		if c.Lacks() == "" && !c.Alone && (strings.HasPrefix(c.Name, "abba") || strings.HasPrefix(c.Name, "rwlock") || c.Name == "condvar") {
			all = append(all, lab.Start(t, c.WithoutNames()))
		}
	}
	if len(all) < 8 {
		t.Fatalf("%d cases", len(all))
	}
	for _, r := range all {
		r.Age(labMinWait + 50*time.Millisecond)
	}
	v, o := judge(t, invocation{}, "--user-stacks", "off")
	wantCode(t, v, o)
	for _, r := range all {
		for _, err := range hanglab.Check(v, r) {
			t.Error(err)
		}
	}
}
