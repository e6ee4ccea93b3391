package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/model"
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
	self, last := os.Getpid(), time.Now().Add(200*time.Millisecond)
	pids, _ := procfs.FS{}.Tasks()
	for _, pid := range pids {
		tids, _ := procfs.FS{}.Threads(pid)
		for _, tid := range tids {
			if policy, _, _ := unix.RawSyscall(unix.SYS_SCHED_GETSCHEDULER, uintptr(tid), 0, 0); policy == unix.SCHED_NORMAL {
				continue // so are most, and a file is read for none of them
			}
			st, err := procfs.FS{}.ThreadStat(pid, tid)
			rank := model.Rank(st.Policy, st.RTPriority)
			if err != nil || rank == 0 || st.State != 'R' || pid == self || st.PPID == self { // a helper process of ours
				continue
			}
			if rank > urgency.Priority || st.Policy == unix.SCHED_FIFO {
				list = append(list, thread{rank, fmt.Sprintf("%s [%d] tid %d, %s, on CPU %d", st.Comm, pid, tid, model.RealTimeOf(st.Policy, st.RTPriority), st.Processor)})
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
