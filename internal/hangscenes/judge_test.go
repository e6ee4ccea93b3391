//go:build linux && (amd64 || arm64)

package hangscenes

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"stackshot/kcdata"
)

func task(pid, ppid int, name, program string, tids ...uint64) *kcdata.Task {
	t := &kcdata.Task{Name: name}
	t.ID, t.Linux.Ppid = uint64(pid), uint32(ppid)
	if program != "" {
		t.Cmdline = []string{program}
	}
	for _, tid := range tids {
		th := &kcdata.Thread{}
		th.ID = tid
		t.Threads = append(t.Threads, th)
	}
	return t
}

var machine = &kcdata.Snapshot{Tasks: []*kcdata.Task{
	task(1, 0, "init", "/sbin/init", 1), task(10, 1, "db", "db", 10, 11), task(12, 1, "batch", "batch", 12),
	task(20, 1, "go", "/usr/bin/go", 20), task(21, 20, "x.test", "/tmp/x.test", 21), task(22, 21, "hangs", "hangs", 22),
}}

// Each word that a screen must have is missed, and each that it must not have is seen.
func TestWrong(t *testing.T) {
	scene := Standing{Scene: &Scene{}, Pids: []int{10}, Once: true, Crowd: "batch",
		Says: []string{`(?i)deadlock`, `\b20\b`}, Not: []string{`Nothing`}}
	right := "DEADLOCK\n db [10] tid 11: 20 behind\n batch [12]\n"
	if wrong := scene.Wrong(right, machine); len(wrong) > 0 {
		t.Errorf("right, and found wrong: %v", wrong)
	}
	for old, made := range map[string]string{
		"db [10]": "db [10]\ndb [10]", "[10]": "", "tid 11": "tid 13", "DEADLOCK": "", "20": "200", "batch [12]": "batch", "\n": "\nNothing\n",
	} {
		if wrong := scene.Wrong(strings.ReplaceAll(right, old, made), machine); len(wrong) != 1 {
			t.Errorf("%q for %q: %v", made, old, wrong)
		}
	}
}

// On a machine that is well nobody may be named, but for what other tests do.
func TestHealthyNamesNobody(t *testing.T) {
	scene := Standing{Scene: &Scene{Healthy: true}}
	for screen, want := range map[string]int{"nothing is wrong": 0, "hangs [22]": 0, "x.test [21], go [20]": 0, "db [10]": 1, "\n5 in line for up to 2.0 s: 5\n   behind db [10] (a mutex)\nat rest: 3\npicture exact: ": 0, "\nat rest: 1\ndb [10]": 1, "init [1], batch [12]": 2} {
		if wrong := scene.Wrong(screen, machine); len(wrong) != want {
			t.Errorf("%q: %v", screen, wrong)
		}
	}
}

func TestNamed(t *testing.T) {
	named := Named("db [10] tid 11, --pid 12 and --pid=13; 14 threads, tids 15, 16 of 17 [18.5]")
	if got, want := slices.Sorted(maps.Keys(named)), []int{10, 11, 12, 13, 15, 16}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
