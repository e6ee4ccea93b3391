package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
)

// bound is a limit of a control group, and how the kernel says that somebody met it.
type bound struct {
	dir, file     string
	most          int64
	events, event string
}

// step runs a capture under a bound. It has a whole file, or says in one line that too little is left, and
// why (then text is ""). The kernel has never to refuse it a process, at which the Go runtime crashes, or
// to end it. text is the report, and said whether it names the bound.
func (b bound) step(t *testing.T) (text string, said bool) {
	t.Helper()
	set(t, b.dir, b.file, b.most)
	file := filepath.Join(t.TempDir(), "file")
	o := inGroup(b.dir).run(t, "take", "-o", file)
	if n := refused(t, b.dir, b.events, b.event); n != "0" {
		t.Fatalf("%s %d: %s processes were refused or ended; exit code %d, %s", b.file, b.most, n, o.code, o.stderr)
	}
	words := fmt.Sprint(b.file, " of ", b.dir, " is ", b.most)
	if o.code == exitFailed {
		if o.want(t, exitFailed, "too little is left", words); strings.Count(o.stderr, "\n") != 1 {
			t.Errorf("%s %d: %q", b.file, b.most, o.stderr)
		}
		onlyFile(t, filepath.Dir(file))
		return "", true
	}
	taken(t, o)
	mode0600(t, file)
	text = strings.Join(strings.Fields(o.stdout+readText(t, file)), " ")
	return text, strings.Contains(text, words)
}

// However few process ids are left, the command makes a whole file of what it can
// do with them, or says in one line that they are too few, and why.
func TestFewPids(t *testing.T) {
	testneed.Lab(t, testneed.Memory)
	testneed.Slow(t)
	t.Parallel()
	dir, _ := controlGroup(t, "pids")
	lesser := map[string]bool{}
	for _, most := range []int64{60, 44, 30, 24, 19, 14, 10, 6} {
		text, said := bound{dir, "pids.max", most, "pids.events", "max"}.step(t)
		if text == "" {
			lesser["error"] = true
			continue
		}
		if lesser["fewer"] = lesser["fewer"] || said; !said && most < 40 {
			t.Errorf("pids.max %d: the report does not say what is missing: %.1000s", most, text)
		}
		lesser["procfs"] = lesser["procfs"] || strings.Contains(text, "nothing was stopped")
	}
	for _, step := range []string{"fewer", "procfs", "error"} {
		if !lesser[step] {
			t.Errorf("no bound led to: %s", step)
		}
	}
}

// However little memory is left, beside 4,300 threads, the command makes a file of what
// fits, each step down said in the report, or says in one line that it is too little.
func TestLittleMemory(t *testing.T) {
	testneed.Lab(t, testneed.Memory)
	testneed.Slow(t)
	needRoot(t)
	testtask.Start(t, testtask.ManyThreads(4300))
	dir, unified := controlGroup(t, "memory")
	b := bound{dir: dir, file: "memory.limit_in_bytes", events: "memory.oom_control", event: "oom_kill"}
	if unified {
		b.file, b.events = "memory.max", "memory.events"
	}
	steps := []string{"only frame-pointer chains are recorded", "no user stacks are recorded", "nothing is stopped"}
	seen := map[string]bool{}
	for _, mib := range []int64{420, 250, 175, 150, 130, 60} {
		b.most = mib << 20
		text, said := b.step(t)
		seen["error"] = seen["error"] || text == ""
		for _, step := range steps {
			seen[step] = seen[step] || said && strings.Contains(text, step)
		}
		if mib == 420 && strings.Contains(text, "little_memory") && !strings.Contains(text, "the machine's memory") {
			t.Errorf("%d MiB are not enough: %.2000s", mib, text)
		}
	}
	for _, step := range append(steps, "error") {
		if !seen[step] {
			t.Errorf("no bound led to: %s", step)
		}
	}
}
