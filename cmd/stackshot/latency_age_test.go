package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"stackshot/internal/testneed"
)

// A child sleeps, and this test knows since when: after it was started, and no
// later than /proc showed it in its sleep. Its age must lie between the two,
// whichever engine took it; an engine without a stop says nothing.
func TestLatencyAgeOfASleeper(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	testneed.Slow(t)
	t.Parallel()
	started := time.Now()
	child := exec.Command("sleep", "60")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer child.Wait()
	defer child.Process.Kill()
	pid := strconv.Itoa(child.Process.Pid)
	deadline := started.Add(10 * time.Second)
	for {
		where, err := os.ReadFile("/proc/" + pid + "/wchan")
		if string(where) == "hrtimer_nanosleep" {
			break
		}
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("the child does not sleep, but is in %q, %v", where, err)
		}
		time.Sleep(time.Millisecond)
	}
	asleep := time.Now()
	time.Sleep(300 * time.Millisecond)
	file := filepath.Join(t.TempDir(), "file")
	before := time.Since(asleep)
	taken(t, stackshot(t, "take", "-q", "--arrival-budget", "200ms", "-o", file, "--pid", pid))
	after := time.Since(started)

	o := stackshot(t, "latency", "--format", "json", file)
	o.want(t, exitWhole)
	var d struct {
		Files []struct {
			Pause      struct{ Stopped bool }
			Scheduling struct {
				Sleeping struct {
					Threads int
					Longest []struct {
						AtMost uint64 `json:"at_most_ns"`
						Place  string
					}
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(o.stdout), &d); err != nil || len(d.Files) != 1 {
		t.Fatalf("%v: %s", err, o.stdout)
	}
	s := d.Files[0].Scheduling.Sleeping
	if !d.Files[0].Pause.Stopped {
		if len(s.Longest) != 0 {
			t.Errorf("nothing was stopped, but ages are known: %+v", s)
		}
		return
	}
	if s.Threads != 1 || len(s.Longest) != 1 || s.Longest[0].Place == "" {
		t.Fatalf("want one sleeper and its place: %s", o.stdout)
	}
	if age := time.Duration(s.Longest[0].AtMost); age < before || age > after {
		t.Errorf("asleep for at most %v; it was for at least %v, and started %v ago", age, before, after)
	}
}
