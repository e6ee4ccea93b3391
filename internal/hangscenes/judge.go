//go:build linux && (amd64 || arm64)

package hangscenes

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"stackshot/kcdata"
)

var number = regexp.MustCompile(`\[([0-9]+)\]|\b(?:pid|tid|PID|TID)s?[ =]([0-9]+(?:, ?[0-9]+)*)`)

// Named are the pids and tids that a text names: "name [12]", "tid 12", "--pid 12".
func Named(text string) map[int]bool {
	named := map[int]bool{}
	for _, m := range number.FindAllStringSubmatch(text, -1) {
		for digits := range strings.SplitSeq(m[1]+m[2], ",") {
			if n, err := strconv.Atoi(strings.TrimSpace(digits)); err == nil {
				named[n] = true
			}
		}
	}
	return named
}

// resting are the lines that say what all others do: whoever is named there is not accused.
var resting = regexp.MustCompile(`(?s)\n(?:\d+ in line for |\d+ in D[^\n]*; at rest: |at rest: ).*?(\npicture )`)

// Wrong says what of a screen is wrong: what it should say of the scene and does not, whom it
// names of a scene that is healthy, and numbers that the file does not know, be it as a task or
// as one left out.
func (r Standing) Wrong(screen string, snap *kcdata.Snapshot) (wrong []error) {
	named := Named(screen)
	add := func(format string, args ...any) { wrong = append(wrong, fmt.Errorf(format, args...)) }
	tasks := map[int]*kcdata.Task{}
	known := map[int]bool{}
	for _, task := range snap.Tasks {
		tasks[int(task.ID)], known[int(task.ID)] = task, true
		for _, th := range task.Threads {
			known[int(th.ID)] = true
		}
	}
	for _, left := range snap.LeftOut {
		known[int(left.Tgid)] = true
	}
	for n := range named {
		if !known[n] {
			add("%d is named, and is nobody in the file", n)
		}
	}
	for _, pid := range r.Pids {
		if !named[pid] {
			add("%s [%d] is not named", nameOf(tasks[pid]), pid)
		}
		if n := linesNaming(screen, pid); r.Once && n > 1 {
			add("%s [%d] is named in %d lines", nameOf(tasks[pid]), pid, n)
		}
	}
	if r.Crowd != "" && !slices.ContainsFunc(snap.Tasks, func(task *kcdata.Task) bool { return task.Name == r.Crowd && named[int(task.ID)] }) {
		add("no process %s is named", r.Crowd)
	}
	for _, p := range r.Says {
		if !regexp.MustCompile(p).MatchString(screen) {
			add("does not say %q", p)
		}
	}
	for _, p := range r.Not {
		if regexp.MustCompile(p).MatchString(screen) {
			add("says %q", p)
		}
	}
	if r.Healthy {
		for n := range Named(resting.ReplaceAllString(screen, "\n$1")) {
			if task := tasks[n]; task != nil && !others(tasks, task) {
				add("%s [%d] is named, and nothing is wrong with it", nameOf(task), n)
			}
		}
	}
	return wrong
}

// linesNaming counts the lines that name somebody, those of commands to run apart.
func linesNaming(screen string, pid int) (n int) {
	for line := range strings.Lines(screen) {
		if Named(line)[pid] && !strings.Contains(line, "--pid") {
			n++
		}
	}
	return n
}

// Alone is a snapshot without what other tests have made, which may hang as it pleases and take
// a screen's room, and how many tasks that were.
func Alone(snap *kcdata.Snapshot) (alone *kcdata.Snapshot, without int) {
	tasks := map[int]*kcdata.Task{}
	for _, task := range snap.Tasks {
		tasks[int(task.ID)] = task
	}
	made := *snap
	made.Tasks = nil
	for _, task := range snap.Tasks {
		if !others(tasks, task) {
			made.Tasks = append(made.Tasks, task)
		}
	}
	return &made, len(snap.Tasks) - len(made.Tasks)
}

// others says whether a task is of another test's, which may do as it pleases: tests of several
// packages run at once, and the tools that build them. It is known by what made it.
func others(tasks map[int]*kcdata.Task, task *kcdata.Task) bool {
	for range len(tasks) {
		if task == nil || task.ID == uint64(os.Getpid()) {
			return false
		}
		if program := programOf(task); strings.HasSuffix(program, ".test") || program == "go" {
			return true
		}
		task = tasks[int(task.Linux.Ppid)]
	}
	return false
}

func programOf(task *kcdata.Task) string {
	if len(task.Cmdline) > 0 {
		return filepath.Base(task.Cmdline[0])
	}
	return task.Name
}

func nameOf(task *kcdata.Task) string {
	if task == nil {
		return "a process that is not in the file"
	}
	return task.Name
}
