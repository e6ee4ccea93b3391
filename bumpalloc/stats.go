package bumpalloc

import "fmt"

// Stats are one cluster's counters. While workers run, the fields are not of one
// moment. When nobody runs, these hold for the sums over all clusters: Size ≥ Used,
// Overhead ≥ Free, and callers hold Used - Overhead bytes. Overhead - Free is lost until
// Reset: slivers under 16 bytes, and blocks whose Free met a held or condemned list.
type Stats struct {
	Size     uint64 // bytes of the arena
	Used     uint64 // bytes ever bumped from the arena
	Spill    uint64 // bytes of Used that other clusters took
	Free     uint64 // bytes on the freelist
	Entries  uint64 // blocks on the freelist
	Overhead uint64 // bytes this cluster ever freed, less those reused from its list
	Reused   uint64 // bytes ever taken off the list
	Taken    uint64 // bytes this cluster took from other clusters' arenas
	Foreign  uint64 // bytes this cluster took from other clusters' lists
	Allocs   uint64 // requests of this cluster that were served
	Frees    uint64 // blocks this cluster gave back
	Busy     uint64 // operations of this cluster given up because a spin ran out
	Refused  uint64 // requests of this cluster that ended in an error
}

// Stats are the counters of a cluster, which must exist.
func (a *Allocator) Stats(cluster int) Stats {
	w := a.arenas[cluster]
	reused := w.reused.Load() // before freed, which is never behind it
	return Stats{
		Size:     uint64(a.size[cluster]),
		Used:     uint64(w.used.Load()),
		Spill:    w.spilled.Load(),
		Free:     w.listed.Load(),
		Entries:  uint64(w.entries.Load()),
		Overhead: w.freed.Load() - reused,
		Reused:   reused,
		Taken:    w.spill.Load(),
		Foreign:  w.foreign.Load(),
		Allocs:   w.allocs.Load(),
		Frees:    w.frees.Load(),
		Busy:     w.busy.Load(),
		Refused:  w.refused.Load(),
	}
}

// Err is the first cluster's fault, an ErrCorrupt, or nil. A request served by
// another rung succeeds although it met a fault, so ask once at the end.
func (a *Allocator) Err() error {
	for i, w := range a.arenas {
		if f := w.fault.Load(); f != 0 {
			return fmt.Errorf("bumpalloc: cluster %d: %w: %v 0x%x", i, ErrCorrupt, reason(f>>32), uint32(f))
		}
	}
	return nil
}
