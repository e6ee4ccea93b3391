package topology

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// Allowed gives the online CPUs that a thread of this process can be put on,
// ascending. It does not read cpuset files, whose place differs between cgroup v1, v2
// and namespaces. Instead a thread made for this asks the kernel for every CPU; the
// kernel grants those of its cpuset. So a narrow affinity (taskset) is no limit, since
// the process can widen it. If the kernel refuses to widen it (seccomp), the result is
// the affinity that the process has.
func Allowed() ([]int, error) {
	type answer struct {
		cpus []int
		err  error
	}
	done := make(chan answer)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		before, now, all := newSet(), newSet(), newSet()
		if err := unix.SchedGetaffinityDynamic(0, before); err != nil {
			done <- answer{err: err}
			return
		}
		all.Fill()
		_ = unix.SchedSetaffinityDynamic(0, all) // if refused, the call below gives the old affinity
		err := unix.SchedGetaffinityDynamic(0, now)
		_ = unix.SchedSetaffinityDynamic(0, before) // Go never ends the process's first thread; this may be it
		done <- answer{members(now), err}
	}()
	a := <-done
	if a.err != nil {
		return nil, fmt.Errorf("sched_getaffinity: %w", a.err)
	}
	return a.cpus, nil
}

// newSet makes a set with room for every CPU that a list may name.
func newSet() unix.CPUSetDynamic { return unix.NewCPUSet(MaxCPU + 1) }

func members(s unix.CPUSetDynamic) []int {
	var out []int
	for cpu := range MaxCPU + 1 {
		if s.IsSet(cpu) {
			out = append(out, cpu)
		}
	}
	return out
}
