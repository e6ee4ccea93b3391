package main

import (
	"fmt"
	"runtime"

	"stackshot/internal/limits"
	"stackshot/snapshot"
)

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
		return fmt.Errorf("no report is made, which 'stackshot report' can do elsewhere: %d MiB of memory are left, and it takes about %d MiB: %v", r.Free>>20, need>>20, r)
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
