package main

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"

	"stackshot/internal/limits"
	"stackshot/snapshot"
)

// A shell's ulimit is meant for other programs: RLIMIT_FSIZE bounds the memory file that
// a snapshot is put together in, too; at RLIMIT_AS and RLIMIT_DATA the Go runtime
// crashes, at RLIMIT_NOFILE a capture breaks off, at RLIMIT_CPU the kernel kills.
var rlimits = []rlimit{
	{unix.RLIMIT_FSIZE, "RLIMIT_FSIZE", unix.RLIM_INFINITY, 1 << 20},
	{unix.RLIMIT_AS, "RLIMIT_AS", unix.RLIM_INFINITY, 3 << 30}, // 2.4 GiB were seen: a heap of the C library's for each thread
	{unix.RLIMIT_DATA, "RLIMIT_DATA", unix.RLIM_INFINITY, 384 << 20},
	{unix.RLIMIT_NOFILE, "RLIMIT_NOFILE", 1 << 16, 64}, // 50 were seen on two CPUs
	{unix.RLIMIT_CPU, "RLIMIT_CPU", unix.RLIM_INFINITY, 0},
}

type rlimit struct {
	which        int
	name         string
	whole, least uint64 // what takes nothing away; below which a capture is not begun
}

// liftLimits has this process, and the helpers that it starts, bounded as little as it
// may. Errors: ErrNoRoom.
func liftLimits() error {
	for _, l := range rlimits {
		if now := l.lift(); now < l.least {
			return fmt.Errorf("%w: %s is %d, and a capture needs %d at least (see ulimit; CAP_SYS_RESOURCE may raise it)", snapshot.ErrNoRoom, l.name, now, l.least)
		}
	}
	return nil
}

// lift gives the limit that is left.
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

// Process ids, which threads take too, may be what the machine has run out of. The
// capture sees to itself (snapshot/scarce.go); here is what the command does.
const (
	leastPids  = 6  // below which not even the error could be told with certainty
	namingPids = 48 // that the looking up of names takes: four helpers, and threads
	plentyPids = 64
)

// What a report takes of memory: a constant, and times its snapshot.
const (
	reportMemory      = 24 << 20
	reportMemoryTimes = 6
)

// memoryFor says why no report can be made of a snapshot of that size; nil: one can.
func memoryFor(size int) error {
	r, need := limits.Machine{}.Memory(), reportMemory+reportMemoryTimes*int64(size)
	if r.Free < need {
		return fmt.Errorf("no report: %d MiB of memory are left, and it needs about %d MiB: %v. 'stackshot report' can make it on another machine", r.Free>>20, need>>20, r)
	}
	return nil
}

// saveThreads has the Go runtime make few threads where few can be made: it does
// not survive one that is refused.
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
