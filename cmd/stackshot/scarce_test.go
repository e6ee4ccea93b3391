package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// However few process ids are left, the command makes a whole file of what it can
// do with them, or says in one line that they are too few, and why. The kernel never
// has to refuse it one: the Go runtime would crash.
func TestFewPids(t *testing.T) {
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
