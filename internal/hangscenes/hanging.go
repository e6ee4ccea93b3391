//go:build linux && (amd64 || arm64)

package hangscenes

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
	"stackshot/internal/userlab"
)

func hanging() []*Scene {
	return []*Scene{
		{Name: "fifo-hog", start: fifoHog, lacks: oneCPU, Again: true},
		{Name: "slow-disk", start: slowDisk, lacks: noSlowDisk, Age: 1300 * time.Millisecond},
		{Name: "stalled-fuse", start: stalledFUSE, lacks: noFUSE, Age: 1300 * time.Millisecond},
		{Name: "mutexes", start: mutexes},
		{Name: "pipes", start: pipes},
		{Name: "runtimes", start: runtimes, lacks: noRuntimes, Age: 1300 * time.Millisecond},
		{Name: "flock", start: flock, Age: 1300 * time.Millisecond},
		{Name: "incident", start: incident, Age: 1300 * time.Millisecond},
		{Name: "starved", start: starved, Age: time.Second, Again: true},
		{Name: "fork-storm", start: forkStorm, Again: true},
		{Name: "memory-limit", start: memoryLimit, lacks: noMemoryLimit, Age: time.Second},
		{Name: "thread-leak", start: threadLeak, lacks: noRoomForThreads},
	}
}

// fifoHog keeps one CPU, the last, for as long as a capture and its screen take.
func fifoHog(tb testing.TB, _ *userlab.Hangs) Standing {
	f := testtask.FIFOHog(tb, runtime.NumCPU()-1, 4*time.Second)
	return Standing{Pids: []int{f.Children[0].Pid}, Once: true, Says: []string{`(?i)FIFO|did not stop`}}
}

func oneCPU() string {
	if runtime.NumCPU() < 2 {
		return "one CPU: nothing else could run"
	}
	return ""
}

// stalledFUSE: a server that sleeps over the lookup of a name, a thread that makes a directory
// and holds the lock of the one above meanwhile, and all who want to look into that.
func stalledFUSE(tb testing.TB, hangs *userlab.Hangs) Standing {
	h := hangs.StartEnds(tb, "stalled-fuse", []string{"archivefs fuse m", "archivefs serve m lookup nap",
		"importer mkdir m/new", "web0 later 100", "web*20 look m/old"})
	return Standing{Pids: []int{h.Parts["archivefs"].Pid, h.Parts["importer"].Pid},
		Says: []string{mountPattern(h.Dir + "/m"), `\b(20|21)\b`}}
}

// mutexes: 22 threads of 43 wait for two mutexes that two of them lock crosswise.
func mutexes(tb testing.TB, hangs *userlab.Hangs) Standing {
	h := hangs.StartScene(tb, userlab.Scene{Name: "abba", Words: []string{"orders-api", "20", "20"}})
	return Standing{Pids: []int{h.Pid}, Says: []string{`(?i)deadlock`, `\b20\b`}}
}

// pipes: each of two programs writes to the other, and neither reads.
func pipes(tb testing.TB, hangs *userlab.Hangs) Standing {
	h := hangs.StartEnds(tb, "pipes", []string{"all pipe p", "all pipe q",
		"extract fill p.w", "extract has q.r", "transform fill q.w", "transform has p.r", "extract write p.w", "transform write q.w"})
	return Standing{Pids: []int{h.Parts["extract"].Pid, h.Parts["transform"].Pid}, Says: []string{`(?i)deadlock`, `\bpipes?\b`}}
}

// runtimes: deadlocks at locks that keep no owner, or that are no futexes: 22 threads at two mutexes of Rust, 5 at a mutex and the
// guard of a static of C++, 22 at two monitors of Java.
func runtimes(tb testing.TB, hangs *userlab.Hangs) Standing {
	all := hangs.StartRuntimes(tb, "hang")
	return Standing{Pids: []int{all[0].Pid, all[1].Pid, all[2].Pid}, Says: []string{`deadlock of 2: catalog`, `guard of a C\+\+ static`, `21\s+threads\s+wait; longest\s+searchd`,
		`Java monitors of java \[\d+\], .jstack \d+. names the holders: 22\s+threads`}}
}

// flock: 50 behind the lock of a process that was stopped.
func flock(tb testing.TB, hangs *userlab.Hangs) Standing {
	h := hangs.StartEnds(tb, "flock", []string{"nightly file f", "nightly flock f", "nightly stop", "cron*50 open-both g f", "cron*50 flock g"})
	return Standing{Pids: []int{h.Parts["nightly"].Pid}, Says: []string{`STOPPED`, `\b50\b`}}
}

// incident: 40 behind the lock of a report that was stopped, its parent among them, and 22 threads in
// a deadlock, beside older trifles: three programs that wait for their own pipes.
func incident(tb testing.TB, hangs *userlab.Hangs) Standing {
	steps := []string{"all pipe p", "all pipe q", "all pipe r", "mailer has p.w", "beeper has q.w", "pager has r.w", "mailer read p.r", "beeper read q.r", "pager read r.r",
		"batch spawn report", "report file f", "report flock f", "batch wait", "report stop",
		"orders nap", "orders.a lock 0", "orders.b lock 1", "orders.a lock 1", "orders.b lock 0", "orders.w*20 lock 0", "cron*40 open-both g f", "cron*40 flock g"}
	h := hangs.StartEnds(tb, "incident", steps)
	return Standing{Pids: []int{h.Parts["report"].Pid, h.Parts["orders"].Pid},
		Says: []string{`(?s)STOPPED, 4[01] behind: holds a file lock.*STUCK\n.*deadlock of 2: orders.*20 behind.*3 threads: .*\nat rest`}, Not: []string{`(?m)^and \d+ more`}}
}

// bind keeps a process to one CPU. One that moves begins to wait anew, as the kernel counts.
func bind(pid, cpu int) error {
	set := new(unix.CPUSet)
	set.Set(cpu)
	return unix.SchedSetaffinity(pid, set)
}

// starved: the nice level of a service lets it run for milliseconds in a second.
func starved(tb testing.TB, hangs *userlab.Hangs) Standing {
	s := userlab.Scene{Name: "hogs", Words: []string{"billing-batch", "8", "checkout-api"}, Life: Life, Nice: map[string]int{}}
	for i := range 8 {
		s.Nice[fmt.Sprint("hog", i)] = 0
	}
	h := hangs.StartScene(tb, s)
	service := h.Parts["service"].Pid
	on := map[int]int{service: 0}
	for i := range 8 { // else the balancer may leave the service a CPU of its own
		on[h.Parts[fmt.Sprint("hog", i)].Pid] = i % runtime.NumCPU()
	}
	for pid, cpu := range on {
		if err := bind(pid, cpu); err != nil {
			tb.Fatalf("hangscenes: %v", err)
		}
	}
	return Standing{Crowd: "billing-batch", Pids: []int{service}, Says: []string{`(?i)wait`}}
}

// forkStorm: one command's processes come and go, and are nearly all that want a CPU.
func forkStorm(tb testing.TB, hangs *userlab.Hangs) Standing {
	hangs.StartScene(tb, userlab.Scene{Name: "storm", Words: []string{"thumbnailer", "61", "100"}, Life: Life, Nice: map[string]int{"leader": 0}})
	return Standing{Crowd: "thumbnailer", Says: []string{`(?:\b[4-9][0-9]\b.*thumbnailer|thumbnailer.*\b[4-9][0-9]\b)`}}
}

// Leaked is how many threads the process has that loses them.
func Leaked() int { return testneed.Length(5000, 20000) }

func threadLeak(tb testing.TB, hangs *userlab.Hangs) Standing {
	h := hangs.StartScene(tb, userlab.Scene{Name: "leak", Words: []string{"session-cache", fmt.Sprint(Leaked())}})
	return Standing{Pids: []int{h.Pid}, Says: []string{fmt.Sprintf(`\b%d,?000\b`, Leaked()/1000)}}
}

// pidsOf are the processes of some roles.
func pidsOf(h *userlab.Hang, roles ...string) (pids []int) {
	for _, r := range roles {
		pids = append(pids, h.Parts[r].Pid)
	}
	return slices.Compact(pids)
}
