package main

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"

	"stackshot/internal/limits"
	"stackshot/snapshot"
)

// A shell's ulimit is meant for other programs. RLIMIT_FSIZE also bounds the memory file that
// holds a snapshot; at RLIMIT_AS and RLIMIT_DATA the Go runtime crashes, at RLIMIT_NOFILE a
// capture fails, at RLIMIT_CPU the kernel kills the process.
var rlimits = []rlimit{
	{unix.RLIMIT_FSIZE, "RLIMIT_FSIZE", unix.RLIM_INFINITY, 1 << 20},
	{unix.RLIMIT_AS, "RLIMIT_AS", unix.RLIM_INFINITY, 3 << 30}, // 2.4 GiB were seen: a heap of the C library's for each thread
	{unix.RLIMIT_DATA, "RLIMIT_DATA", unix.RLIM_INFINITY, 384 << 20},
	{unix.RLIMIT_NOFILE, "RLIMIT_NOFILE", 1 << 16, 64}, // 50 were seen on two CPUs
	{unix.RLIMIT_CPU, "RLIMIT_CPU", unix.RLIM_INFINITY, 0},
}

type rlimit struct {
	which int
	name  string
	whole uint64 // a limit that a capture never reaches
	least uint64 // below it a capture is not begun
}

// liftLimits raises the limits of this process, and of the helpers that it starts, as far as
// the kernel allows. Errors: ErrNoRoom.
func liftLimits() error {
	for _, l := range rlimits {
		if now := l.lift(); now < l.least {
			return fmt.Errorf("%w: %s is %d, and a capture needs %d at least (see ulimit; CAP_SYS_RESOURCE may raise it)", snapshot.ErrNoRoom, l.name, now, l.least)
		}
	}
	return nil
}

// lift raises the limit if it can, and gives the one that holds now.
func (l rlimit) lift() uint64 {
	var now unix.Rlimit
	if unix.Getrlimit(l.which, &now) != nil || now.Cur >= l.whole {
		return l.whole
	}
	for _, wish := range []unix.Rlimit{{Cur: l.whole, Max: max(now.Max, l.whole)}, {Cur: now.Max, Max: now.Max}} {
		if unix.Setrlimit(l.which, &wish) == nil {
			return wish.Cur
		}
	}
	return now.Cur
}

// The machine may have run out of process ids, of which each thread takes one.
// snapshot/thrift.go says what a capture does then; here is what the command does.
const (
	leastPids  = 6  // with fewer, the command may be unable to print the error
	namingPids = 48 // four helpers that look up names, and threads
	plentyPids = 64 // enough for everything
)

// A report takes this much memory, in bytes, and this many times the size of its snapshot.
const (
	reportMemory      = 24 << 20
	reportMemoryTimes = 6
)

// memoryFor says why there is too little memory for the report of a snapshot, size in bytes.
func memoryFor(size int) error {
	r, need := limits.Machine{}.Memory(), reportMemory+reportMemoryTimes*int64(size)
	if r.Free < need {
		return fmt.Errorf("no report: %d MiB of memory are left, and it needs about %d MiB: %v. 'stackshot report' can make it on another machine", r.Free>>20, need>>20, r)
	}
	return nil
}

// saveThreads makes the Go runtime create few threads if few are allowed: the runtime crashes
// when the kernel refuses one.
func saveThreads() error {
	if (limits.Machine{}).NeedPids(plentyPids) == nil {
		return nil
	}
	runtime.GOMAXPROCS(1)
	if err := (limits.Machine{}).NeedPids(leastPids); err != nil {
		return fmt.Errorf("%w: %w", snapshot.ErrNoRoom, err)
	}
	return nil
}
