package main

import (
	"bytes"
	"fmt"
	"os"
	"slices"
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
	starved []kcdata.Warning // by mu; for the next file
}

// take returns the warnings for the next file.
func (n *notes) take() []kcdata.Warning {
	n.mu.Lock()
	defer n.mu.Unlock()
	list := append(slices.Clone(n.all), n.starved...)
	n.starved = nil
	return list
}

// starve says at once, and in the next file, that real-time tasks had all CPUs, and what was done.
func (n *notes) starve(wasRaised, quiet bool) {
	then := "it goes on as an ordinary program, in the share that the kernel keeps for these"
	if wasRaised {
		then = fmt.Sprintf("it goes on at SCHED_RR %d, for %v of CPU time at most", urgency.Raised, urgency.Budget)
	}
	text := "no CPU was free for stackshot for 1 s"
	if list := realTime(); len(list) > 0 {
		text += ": real-time tasks have them (" + strings.Join(show.AtMost(4, list, func(n int) string { return fmt.Sprintf("and %d more", n) }), ", ") + ")"
	}
	text += "; " + then
	if !quiet {
		say(os.Stderr, "%s", show.Clean(text))
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.starved = append(n.starved, kcdata.Warning{Code: "starved", Text: text})
}

// realTime names the runnable real-time threads of others, as many as are found in a moment.
func realTime() (list []string) {
	policies := map[uintptr]string{unix.SCHED_FIFO: "FIFO", unix.SCHED_RR: "RR", unix.SCHED_DEADLINE: "DEADLINE"}
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
			if fields := bytes.Fields(b[end+1:]); begin > 0 && end > begin && len(fields) > 37 && fields[0][0] == 'R' {
				list = append(list, fmt.Sprintf("%s [%d] tid %d, %s %s, on CPU %s", b[begin+1:end], pid, tid, name, fields[37], fields[36]))
			}
		}
		if time.Now().After(last) {
			break
		}
	}
	return list
}
