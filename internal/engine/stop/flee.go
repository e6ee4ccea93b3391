package stop

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Flight keeps account of the threads of this process that left some CPUs. A thread that
// waits behind somebody's real-time task holds up the Go runtime whenever the runtime
// stops its own world, for as long as that task runs: on a busy machine the kernel's load
// balancer does not move the thread. So when a CPU did not come to a stop, all threads of
// this process leave that CPU until the Take is over.
//
// The coordinator owns it.
type Flight struct {
	from map[unix.CPUSet]unix.CPUSet // a thread's CPUs before, by its CPUs after
}

// Flee moves all threads off some CPUs, except those that may run nowhere else.
func (f *Flight) Flee(cpus *unix.CPUSet) {
	if f.from == nil {
		f.from = map[unix.CPUSet]unix.CPUSet{}
	}
	eachThread(func(tid int, now unix.CPUSet) {
		next := without(&now, cpus)
		if next != now && next.Count() > 0 && unix.SchedSetaffinity(tid, &next) == nil {
			f.from[next] = now
		}
	})
}

// ComeBack gives every thread its CPUs back, also threads that were made since.
func (f *Flight) ComeBack() {
	if len(f.from) == 0 {
		return
	}
	eachThread(func(tid int, now unix.CPUSet) {
		for before, ok := f.from[now]; ok; before, ok = f.from[now] {
			unix.SchedSetaffinity(tid, &before)
			now = before
		}
	})
	f.from = nil
}

func eachThread(do func(tid int, now unix.CPUSet)) {
	list, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return
	}
	for _, e := range list {
		var now unix.CPUSet
		tid, err := strconv.Atoi(e.Name())
		if err == nil && unix.SchedGetaffinity(tid, &now) == nil {
			do(tid, now)
		}
	}
}

func without(set, cpus *unix.CPUSet) (out unix.CPUSet) {
	for i := range set {
		out[i] = set[i] &^ cpus[i]
	}
	return out
}
