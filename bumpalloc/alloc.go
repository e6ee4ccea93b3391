package bumpalloc

// outcome of one rung, in the order in which a failed ladder reports: a
// request that met a fault says so even if another rung was only empty.
type outcome uint8

const (
	served outcome = iota
	empty
	busy
	corrupt
)

// AllocAtLeast hands out a block of want bytes to a worker of cluster. A rung that
// has less gives what it has, if that is at least low: the rest of an arena, or its
// largest tail. Both sizes are rounded up to Align; low may not exceed want. The memory
// keeps what was in it. Errors: ErrNoSpace, ErrBusy, ErrCorrupt, ErrSize (0 or above
// MaxSize), ErrCluster.
//
// The ladder, one rung after the other:
//
//  1. the cluster's own arena: memory near the worker, contended only by its
//     cluster mates;
//  2. the other clusters' arenas, from the next index round to the one before,
//     so that two full clusters do not both fall upon the same third. Far
//     memory, so counted as spill with the giver and with the taker;
//  3. the cluster's own freelist: used only now, because a walk under a lock
//     costs more than a compare-and-swap on far memory;
//  4. the other clusters' freelists, in the order of rung 2. Not spill: where
//     a tail lies says nothing of whose list it is on. Counted as Foreign.
func (a *Allocator) AllocAtLeast(cluster int, low, want uint32) (Block, error) {
	if uint(cluster) >= uint(len(a.arenas)) {
		return Block{}, ErrCluster
	}
	if low == 0 || low > want || want > MaxSize {
		return Block{}, ErrSize
	}
	low, want = roundUp(low), roundUp(want)
	var b Block
	got, worst := empty, empty
	for step := range 2 * len(a.arenas) { // rungs 1 and 2, then 3 and 4
		bumping, giver := step < len(a.arenas), (cluster+step)%len(a.arenas)
		if bumping {
			b, got = a.bump(giver, low, want)
		} else {
			b, got = a.take(cluster, giver, low, want)
		}
		if got == served {
			a.book(cluster, giver, bumping, b.Len)
			return b, nil
		}
		worst = max(worst, got)
	}
	return Block{}, a.refuse(cluster, worst)
}

// bump takes want bytes, or the rest if that is at least low, from giver's
// arena. The loop is bounded twice: by spin, and because every lost swap is
// another worker's gain of at least Align bytes.
func (a *Allocator) bump(giver int, low, want uint32) (Block, outcome) {
	w, size := a.arenas[giver], a.size[giver]
	for range a.spin {
		used := w.used.Load()
		if used > size || used%Align != 0 {
			return Block{}, a.condemn(giver, badUsed, used)
		}
		n := min(want, size-used)
		if n < low {
			return Block{}, empty
		}
		if w.used.CompareAndSwap(used, used+n) {
			return Block{a.base[giver] + used, n}, served
		}
	}
	return Block{}, busy
}

// book counts a served request with the taker and, when it left its own
// cluster, as spill or foreign reuse.
func (a *Allocator) book(taker, giver int, bumped bool, n uint32) {
	t := a.arenas[taker]
	t.allocs.Add(1)
	switch {
	case taker == giver:
	case bumped:
		t.spill.Add(uint64(n))
		a.arenas[giver].spilled.Add(uint64(n))
	default:
		t.foreign.Add(uint64(n))
	}
}

// refuse counts a request that failed and chooses its error.
func (a *Allocator) refuse(cluster int, worst outcome) error {
	t := a.arenas[cluster]
	t.refused.Add(1)
	switch worst {
	case corrupt:
		return ErrCorrupt
	case busy:
		t.busy.Add(1)
		return ErrBusy
	}
	return ErrNoSpace
}

// condemn records the first fault of a cluster. Its freelist is out of use
// until Reset; its bump word is looked at afresh each time.
func (a *Allocator) condemn(cluster int, why reason, word uint32) outcome {
	a.arenas[cluster].fault.CompareAndSwap(0, uint64(why)<<32|uint64(word))
	return corrupt
}
