package bumpalloc

// Stats are one cluster's counters, or their sum. Read while workers run, the
// fields are each true at some time but not at the same one; when nobody runs,
// over all clusters: Size ≥ Used, Overhead ≥ Free, and the bytes in the hands
// of callers are Used - Overhead.
type Stats struct {
	Size     uint64 // bytes of the arena
	Used     uint64 // bytes ever bumped from the arena
	Spill    uint64 // bytes of Used that other clusters took
	Free     uint64 // bytes on the freelist
	Entries  uint64 // blocks on the freelist
	Overhead uint64 // bytes this cluster ever freed, less those reused from its list
	Reused   uint64 // bytes ever taken off the list
	Foreign  uint64 // bytes this cluster took from other clusters' lists
	Allocs   uint64 // requests of this cluster that were served
	Frees    uint64 // blocks this cluster gave back
	Busy     uint64 // operations of this cluster given up because a spin ran out
	Refused  uint64 // requests of this cluster that ended in an error
}

// Lost is the part of the overhead that no later request can use: slivers
// under 16 bytes, and blocks whose Free met a held or condemned list.
func (s Stats) Lost() uint64 { return s.Overhead - min(s.Free, s.Overhead) }

// Stats are the counters of cluster; all zero if there is no such cluster.
func (a *Allocator) Stats(cluster int) Stats {
	if uint(cluster) >= uint(len(a.arenas)) {
		return Stats{}
	}
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
		Foreign:  w.foreign.Load(),
		Allocs:   w.allocs.Load(),
		Frees:    w.frees.Load(),
		Busy:     w.busy.Load(),
		Refused:  w.refused.Load(),
	}
}

// SpillBy is the number of bytes that cluster took from other clusters' arenas.
func (a *Allocator) SpillBy(cluster int) uint64 {
	if uint(cluster) >= uint(len(a.arenas)) {
		return 0
	}
	return a.arenas[cluster].spill.Load()
}

// Total is the sum over all clusters.
func (a *Allocator) Total() Stats {
	var t Stats
	for i := range a.arenas {
		s := a.Stats(i)
		t.Size += s.Size
		t.Used += s.Used
		t.Spill += s.Spill
		t.Free += s.Free
		t.Entries += s.Entries
		t.Overhead += s.Overhead
		t.Reused += s.Reused
		t.Foreign += s.Foreign
		t.Allocs += s.Allocs
		t.Frees += s.Frees
		t.Busy += s.Busy
		t.Refused += s.Refused
	}
	return t
}

// Err is the first cluster's fault, an ErrCorrupt, or nil. A request served by
// another rung succeeds although it met a fault, so ask once at the end.
func (a *Allocator) Err() error {
	for i, w := range a.arenas {
		if w.fault.Load() != 0 {
			return a.errs[i].corrupt
		}
	}
	return nil
}
