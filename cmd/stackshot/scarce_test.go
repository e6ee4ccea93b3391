package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
)

// However few process ids are left, the command makes a whole file of what it can
// do with them, or says in one line that they are too few, and why. The kernel never
// has to refuse it one: the Go runtime would crash.
func TestFewPids(t *testing.T) {
	testneed.Lab(t, testneed.Memory)
	testneed.Slow(t)
	t.Parallel()
	dir, _ := controlGroup(t, "pids")
	lesser := map[string]bool{}
	for _, most := range []int64{60, 44, 30, 24, 19, 14, 10, 6} {
		set(t, dir, "pids.max", most)
		file := filepath.Join(t.TempDir(), "file")
		o := inGroup(dir).run(t, "take", "-o", file)
		if n := refused(t, dir, "pids.events", "max"); n != "0" {
			t.Fatalf("pids.max %d: %s threads or processes were refused; exit code %d, %s", most, n, o.code, o.stderr)
		}
		if o.code == exitFailed {
			o.want(t, exitFailed, "too little is left", fmt.Sprint("pids.max of ", dir, " is ", most))
			if strings.Count(o.stderr, "\n") != 1 {
				t.Errorf("pids.max %d: %q", most, o.stderr)
			}
			onlyFile(t, filepath.Dir(file))
			lesser["error"] = true
			continue
		}
		taken(t, o)
		mode0600(t, file)
		text := strings.Join(strings.Fields(o.stdout), " ")
		if said := strings.Contains(text, fmt.Sprint("pids.max of ", dir, " is ", most)); said {
			lesser["fewer"] = true
		} else if most < 40 {
			t.Errorf("pids.max %d: the report does not say what is missing: %.1000s", most, o.stdout)
		}
		if strings.Contains(text, "nothing was stopped") {
			lesser["procfs"] = true
		}
	}
	for _, step := range []string{"fewer", "procfs", "error"} {
		if !lesser[step] {
			t.Errorf("no bound led to: %s", step)
		}
	}
}

// However little memory is left, beside 4,300 threads, the command makes a file of what
// fits, each step down said in the report, or says in one line that it is too little.
// The kernel never has to end it.
func TestLittleMemory(t *testing.T) {
	testneed.Lab(t, testneed.Memory)
	testneed.Slow(t)
	needRoot(t)
	testtask.Start(t, testtask.ManyThreads(4300))
	dir, unified := controlGroup(t, "memory")
	bound, oom := "memory.limit_in_bytes", "memory.oom_control"
	if unified {
		bound, oom = "memory.max", "memory.events"
	}
	steps := []string{"only frame-pointer chains are recorded", "no user stacks are recorded", "nothing is stopped"}
	seen := map[string]bool{}
	for _, mib := range []int64{420, 250, 175, 150, 130, 60} {
		set(t, dir, bound, mib<<20)
		file := filepath.Join(t.TempDir(), "file")
		o := inGroup(dir).run(t, "take", "-o", file)
		if n := refused(t, dir, oom, "oom_kill"); n != "0" {
			t.Fatalf("%d MiB: %s processes were ended; exit code %d, %s", mib, n, o.code, o.stderr)
		}
		if o.code == exitFailed {
			o.want(t, exitFailed, "too little is left", fmt.Sprint(bound, " of ", dir, " is ", mib<<20))
			if strings.Count(o.stderr, "\n") != 1 {
				t.Errorf("%d MiB: %q", mib, o.stderr)
			}
			onlyFile(t, filepath.Dir(file))
			seen["error"] = true
			continue
		}
		taken(t, o)
		mode0600(t, file)
		text := strings.Join(strings.Fields(readText(t, file)), " ")
		for _, step := range steps {
			if strings.Contains(text, step) && strings.Contains(text, fmt.Sprint(bound, " of ", dir, " is ", mib<<20)) {
				seen[step] = true
			}
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
