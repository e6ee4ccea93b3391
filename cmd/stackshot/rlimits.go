package main

import (
	"fmt"

	"golang.org/x/sys/unix"

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
			return fmt.Errorf("%w: %s is %d, and it takes %d at least (ulimit; more is for CAP_SYS_RESOURCE)", snapshot.ErrNoRoom, l.name, now, l.least)
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
	if unix.Setrlimit(l.which, &unix.Rlimit{Cur: l.whole, Max: max(now.Max, l.whole)}) == nil {
		return l.whole
	}
	if unix.Setrlimit(l.which, &unix.Rlimit{Cur: now.Max, Max: now.Max}) == nil {
		return now.Max
	}
	return now.Cur
}
