package topology

import (
	"fmt"
	"runtime"
	"unsafe"

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
		var before, now, all affinity
		if err := before.get(); err != nil {
			done <- answer{err: err}
			return
		}
		for i := range all {
			all[i] = ^uint64(0)
		}
		_ = all.set() // refused: the get below tells what there is
		err := now.get()
		_ = before.set() // the runtime keeps the process's first thread, if it was that one
		done <- answer{now.cpus(), err}
	}()
	a := <-done
	if a.err != nil {
		return nil, fmt.Errorf("sched_getaffinity: %w", a.err)
	}
	return a.cpus, nil
}

// affinity is a CPU mask for every CPU a list may name. unix.CPUSet stops at
// CPU 1023.
type affinity [(MaxCPU + 1) / 64]uint64

func (a *affinity) set() error {
	return a.call(unix.SYS_SCHED_SETAFFINITY)
}

func (a *affinity) get() error {
	return a.call(unix.SYS_SCHED_GETAFFINITY)
}

func (a *affinity) call(nr uintptr) error {
	_, _, errno := unix.RawSyscall(nr, 0, unsafe.Sizeof(*a), uintptr(unsafe.Pointer(a)))
	if errno != 0 {
		return errno
	}
	return nil
}

func (a *affinity) cpus() []int {
	var out []int
	for cpu := range len(a) * 64 {
		if a[cpu/64]>>(cpu%64)&1 != 0 {
			out = append(out, cpu)
		}
	}
	return out
}
