package topology

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// Allowed gives the online CPUs that a thread of this process can be put on,
// ascending. It asks the kernel rather than reading cpuset files, whose place
// differs between cgroup v1, v2 and namespaces: a thread made for this and
// ended after it asks for every CPU, and what it then has is what the cpuset
// left of it. So a narrow affinity (taskset) does not count as a limit, since
// it can be widened. Where widening is refused (seccomp), what the process has
// now is all there is.
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
		_ = unix.SchedSetaffinityDynamic(0, all) // refused: the get below tells what there is
		err := unix.SchedGetaffinityDynamic(0, now)
		_ = unix.SchedSetaffinityDynamic(0, before) // the runtime keeps the process's first thread, if it was that one
		done <- answer{members(now), err}
	}()
	a := <-done
	if a.err != nil {
		return nil, fmt.Errorf("sched_getaffinity: %w", a.err)
	}
	return a.cpus, nil
}

// newSet has room for every CPU that a list may name.
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
