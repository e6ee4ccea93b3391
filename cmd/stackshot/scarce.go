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
	helperPids = 10 // that a helper process takes, at most
	namingPids = 48 // that the looking up of names takes: four helpers, and threads
	plentyPids = 64
)

// saveThreads has the Go runtime make few threads where few can be made: it does
// not survive one that is refused.
func saveThreads() error {
	if pidsLeft(plentyPids) == nil {
		return nil
	}
	runtime.GOMAXPROCS(1)
	if err := pidsLeft(leastPids); err != nil {
		return fmt.Errorf("%w: %w", snapshot.ErrNoRoom, err)
	}
	return nil
}

// pidsLeft says why there cannot be n more threads and processes; nil: there can.
func pidsLeft(n int64) error {
	if r := (limits.Machine{}).Pids(n); r.Free < n {
		return fmt.Errorf("%d more threads and processes are allowed, and it takes %d: %v", r.Free, n, r)
	}
	return nil
}
