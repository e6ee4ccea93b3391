package main

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/procfs"
	"stackshot/internal/show"
	"stackshot/internal/urgency"
	"stackshot/kcdata"
)

// notes are the warnings of this process's own.
type notes struct {
	mu      sync.Mutex
	all     []kcdata.Warning // by mu; for every file
	starved []kcdata.Warning // by mu; for the file that is being made
	file    int              // by mu; counts forget
}

// take returns the warnings for a file.
func (n *notes) take() []kcdata.Warning {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append(slices.Clone(n.all), n.starved...)
}

// forget begins with another file.
func (n *notes) forget() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.starved = nil
	n.file++
}

// starve says at once, and in the file, that real-time tasks had all CPUs, and what was done.
func (n *notes) starve(wasRaised, quiet bool) {
	then := "it goes on as an ordinary program, in the share that the kernel keeps for these"
	if wasRaised {
		then = fmt.Sprintf("it goes on at SCHED_RR %d, for %v of CPU time at most", urgency.Raised, urgency.Budget)
	}
	text := "stackshot had no CPU for 1 s"
	n.mu.Lock()
	i, file := len(n.starved), n.file
	n.starved = append(n.starved, kcdata.Warning{Code: "starved", Text: text + "; " + then})
	n.mu.Unlock()
	if list := realTime(); len(list) > 0 {
		names := show.AtMost(4, list, func(n int) string { return fmt.Sprintf("and %d more", n) })
		text += "; real-time tasks that run or want to: " + strings.Join(names, ", ")
	}
	text += "; " + then
	n.mu.Lock()
	if n.file == file {
		n.starved[i].Text = text
	}
	n.mu.Unlock()
	if !quiet {
		say(os.Stderr, "%s", show.Clean(text))
	}
}

// realTime names the runnable real-time threads that may keep this process from a CPU, those of the highest
// priority first, as many as are found in a moment.
func realTime() (names []string) {
	type thread struct {
		rank int
		name string
	}
	var list []thread
	policies := map[uintptr]string{unix.SCHED_FIFO: "FIFO", unix.SCHED_RR: "RR", unix.SCHED_DEADLINE: "DEADLINE"}
	self := strconv.Itoa(os.Getpid())
	last := time.Now().Add(200 * time.Millisecond)
	pids, _ := procfs.FS{}.Tasks()
	for _, pid := range pids {
		tids, _ := procfs.FS{}.Threads(pid)
		for _, tid := range tids {
			policy, _, _ := unix.RawSyscall(unix.SYS_SCHED_GETSCHEDULER, uintptr(tid), 0, 0)
			name := policies[policy&^unix.SCHED_RESET_ON_FORK]
			if name == "" || pid == os.Getpid() {
				continue
			}
			b, _ := os.ReadFile("/proc/" + procfs.ThreadDir(pid, tid) + "/stat")
			begin, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
			fields := strings.Fields(string(b[end+1:]))
			if begin < 0 || end < begin || len(fields) < 38 || fields[0] != "R" || fields[1] == self { // a helper process of ours
				continue
			}
			rank, _ := strconv.Atoi(fields[37])
			if name == "DEADLINE" {
				rank = 100
			}
			if rank > urgency.Priority || name == "FIFO" {
				list = append(list, thread{rank, fmt.Sprintf("%s [%d] tid %d, %s %s, on CPU %s", b[begin+1:end], pid, tid, name, fields[37], fields[36])})
			}
		}
		if time.Now().After(last) {
			break
		}
	}
	slices.SortStableFunc(list, func(a, b thread) int { return b.rank - a.rank })
	for _, t := range list {
		names = append(names, t.name)
	}
	return names
}
