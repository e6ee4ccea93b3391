package waits

import (
	"fmt"
	"slices"
	"strings"

	"stackshot/internal/model"
	"stackshot/kcdata"
)

// oneInstant reports whether what the file shows was so at one instant: nothing ran between
// its first and its last record, or nothing that ran was seen to.
func oneInstant(s *kcdata.Snapshot) bool {
	a := s.Atomicity
	if a != nil && a.Ran > 0 {
		return false
	}
	if a != nil && a.Compared > 0 && a.Missed == 0 && a.Gone == 0 {
		return true
	}
	if s.Isolation != "irqoff" && s.Isolation != "preemptoff" || s.Capture.StopBroken > 0 {
		return false
	}
	return !slices.ContainsFunc(s.CPUs, func(c kcdata.LinuxCPU) bool { return c.Flags&(kcdata.CPUMissed|kcdata.CPULeft) != 0 })
}

// recorded reports whether s has records of waits. Their sum is behind the tasks, where a file
// that breaks off may not have it.
func recorded(s *kcdata.Snapshot) bool {
	return s.WaitTaken != nil || slices.ContainsFunc(s.Tasks, func(task *kcdata.Task) bool {
		return slices.ContainsFunc(task.Threads, func(t *kcdata.Thread) bool { return t.Wait != nil || len(t.Futexes) > 0 })
	})
}

// inD counts the threads in uninterruptible sleep.
func inD(s *kcdata.Snapshot) (n uint32) {
	for _, task := range s.Tasks {
		for _, t := range task.Threads {
			if model.StateOf(t).Class == model.Blocked && !t.IsSelf() {
				n++
			}
		}
	}
	return n
}

// pagedOut counts the futex words with bytes around that were not in memory, and without an
// owner: the bytes before a word that begins a page tell nothing of it.
func pagedOut(s *kcdata.Snapshot) (n uint32) {
	for _, task := range s.Tasks {
		for _, t := range task.Threads {
			for i := range t.Futexes {
				if t.Futexes[i].Flags&kcdata.FutexAbsent != 0 && t.Futexes[i].OwnerTid == 0 {
					n++
				}
			}
		}
	}
	return n
}

// limits says what the file cannot tell.
func limits(s *kcdata.Snapshot) (out []string) {
	say := func(when bool, format string, args ...any) {
		if when {
			out = append(out, fmt.Sprintf(format, args...))
		}
	}
	if s.OtherKernel() {
		return []string{"who waits for whom is judged of Linux alone"}
	}
	say(s.Engine == "procfs", "no wait records: engine procfs reads no memory of the kernel, so owners of locks are not known, and nothing was stopped")
	say(s.Engine == "procfs", "engine procfs does not tell a thread that runs from one that waits for a CPU")
	switch {
	case s.WaitTaken != nil:
		out = append(out, sourceLimits(s.WaitTaken)...)
		n := pagedOut(s)
		say(n > 0, "%s had bytes around that are not in memory: the owner may be unknown", count(n, "futex word", "futex words"))
	case recorded(s):
		out = append(out, "the file breaks off before it says which waits could not be recorded")
	default:
		say(s.Partial && s.Engine != "procfs", "no wait records: the file was not read that far, so owners of locks are not known")
		say(!s.Partial && s.Engine != "procfs", "no wait records: the file was taken with --wait off, or by an old version, so owners of locks are not known")
		n := inD(s)
		say(n > 0, "whom %s in uninterruptible sleep (D) %s for", count(n, "thread", "threads"), map[bool]string{true: "waits", false: "wait"}[n == 1])
	}
	out = append(out, fileLimits(s)...)
	say(s.Machine.Redacted != 0, "the file is redacted: system calls have no arguments, so which child a thread waits for is not known; programs have no stacks, so locks that only these tell (Rust, Java, C++ statics) are not seen")
	say(s.Symbols.Len() == 0 && s.ThreadCount() > 0, "functions of the kernel have no names, so what their stacks tell is not known")
	out = append(out, cpuLimits(s)...)
	say(s.Request != "", "only a part of the machine was recorded, so owners may be outside of the file")
	say(len(s.LeftOut) > 0, "%d tasks are missing, wholly or in part: owners may be among them", len(s.LeftOut))
	say(s.HasMachine && s.Machine.PidNSIsFirst == 0, "only one pid namespace was recorded: an owner outside of it has no name")
	say(!oneInstant(s) && s.Engine != "procfs", "the file is not of one instant: an owner may have changed between two records")
	return out
}

// sourceLimits are those of what the window could read.
func sourceLimits(w *kcdata.LinuxWaitTaken) (out []string) {
	has := func(bits uint32) bool { return w.Sources&bits != 0 }
	for _, l := range []struct {
		when bool
		text string
	}{
		{!has(kcdata.WaitHasBlockedOn), "on this kernel interruptible waits for a kernel lock have no field: they are not seen"},
		{!has(kcdata.WaitHasScan) && !has(kcdata.WaitHasBlocker), "on this kernel waits for an rwsem or a semaphore are not seen: there is no field, and kernel stacks could not be scanned"},
		{!has(kcdata.WaitHasScan) && has(kcdata.WaitHasBlocker), "kernel stacks could not be scanned: killable waits for an rwsem are not seen"},
		{!has(kcdata.WaitHasPI), "this kernel does not say which thread has an rt_mutex"},
		{!has(kcdata.WaitHasWords), "user memory could not be read: owners of futexes are not known"},
		{!has(kcdata.WaitHasFrozen), "this kernel does not say which threads are frozen"},
		{w.Unsound > 0, count(w.Unsound, "scan of a kernel stack", "scans of kernel stacks") + " met the slow path of a lock and did not find the lock"},
		{w.Refused > 0, count(w.Refused, "futex word", "futex words") + " had bytes around that are not ordinary memory: the owner is unknown"},
		{w.Unsure > 0, count(w.Unsure, "futex", "futexes") + " may have more than one owner, or one that could not be checked: none is named"},
	} {
		if l.when {
			out = append(out, l.text)
		}
	}
	return out
}

func count(n uint32, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// maxNamed is how many CPUs a sentence names.
const maxNamed = 8

// cpuLimits names the CPUs that ran on.
func cpuLimits(s *kcdata.Snapshot) (out []string) {
	for _, l := range []struct {
		flag uint32
		why  string
	}{{kcdata.CPUMissed, "did not come to the stop"}, {kcdata.CPULeft, "was left running on purpose"}} {
		var cpus []string
		n := 0
		for i := range s.CPUs {
			if s.CPUs[i].Flags&l.flag == 0 {
				continue
			}
			if n++; n <= maxNamed {
				cpus = append(cpus, fmt.Sprint(s.CPUs[i].CPU))
			}
		}
		if n > maxNamed {
			cpus = append(cpus, fmt.Sprintf("and %d more", n-maxNamed))
		}
		if n > 0 {
			out = append(out, fmt.Sprintf("CPU %s %s: threads on it went on while the others were recorded", strings.Join(cpus, ", "), l.why))
		}
	}
	return out
}
