package bumpalloc

import "sync/atomic"

// entry is a freed block as its header describes it.
type entry struct{ off, length, next uint32 }

// Free puts b, a block or any part of one, on the freelist of cluster: the
// cluster that frees, wherever the memory lies, because its workers have it in
// their cache. All of b.Len counts as overhead until it is used again; what
// lies outside the Align grid, or has no room for an entry header, is never
// listed and stays overhead. An empty b is fine.
//
// Errors: ErrCluster; ErrBlock; ErrDoubleFree, if the block begins with a listed entry;
// ErrBusy and ErrCorrupt: b is counted, and cannot be used again until Reset.
func (a *Allocator) Free(cluster int, b Block) error {
	if uint(cluster) >= uint(len(a.arenas)) {
		return ErrCluster
	}
	if b.Len == 0 {
		return nil
	}
	if !a.handedOut(b) {
		return ErrBlock
	}
	off := roundUp64(b.Off)
	end := (uint64(b.Off) + uint64(b.Len)) &^ (Align - 1)
	listable := end >= off+entrySize
	if listable && atomic.LoadUint64(a.word(uint32(off)+8)) == a.seal(uint32(off)) {
		return ErrDoubleFree
	}
	w := a.arenas[cluster]
	w.frees.Add(1)
	w.freed.Add(uint64(b.Len)) // before the push: reused never overtakes freed
	if !listable {
		return nil
	}
	return a.push(cluster, entry{off: uint32(off), length: uint32(end - off)})
}

// roundUp64 rounds any offset up to Align without wrapping.
func roundUp64(off uint32) uint64 { return (uint64(off) + Align - 1) &^ (Align - 1) }

// handedOut says whether b lies in the used part of one arena.
func (a *Allocator) handedOut(b Block) bool {
	if uint64(b.Off) >= uint64(len(a.data)) {
		return false
	}
	k := a.arenaOf(b.Off)
	used := min(a.arenas[k].used.Load(), a.size[k])
	return uint64(b.Off-a.base[k])+uint64(b.Len) <= uint64(used)
}

// acquire takes cluster at's freelist lock for a worker of cluster, within spin
// turns. It reads before it swaps, so that waiters share the line.
func (a *Allocator) acquire(cluster, at int) bool {
	l := &a.arenas[at].lock
	for range a.spin {
		if l.Load() == 0 && l.CompareAndSwap(0, uint32(cluster)+1) {
			return true
		}
	}
	return false
}

// push makes e the first entry of cluster's own list.
func (a *Allocator) push(cluster int, e entry) error {
	w := a.arenas[cluster]
	if !a.acquire(cluster, cluster) {
		w.busy.Add(1)
		return ErrBusy
	}
	if w.fault.Load() != 0 {
		w.lock.Swap(0)
		return ErrCorrupt
	}
	e.next = w.head.Load()
	a.write(e)
	atomic.StoreUint64(a.word(e.off+8), a.seal(e.off))
	w.head.Store(toLink(e.off))
	w.entries.Add(1)
	w.listed.Add(uint64(e.length))
	w.lock.Swap(0) // publishes all of the above
	return nil
}

// take serves a request from giver's freelist. An empty list is seen without
// its lock.
func (a *Allocator) take(cluster, giver int, low, want uint32) (Block, outcome) {
	w := a.arenas[giver]
	if w.fault.Load() != 0 {
		return Block{}, corrupt
	}
	if w.head.Load() == 0 {
		return Block{}, empty
	}
	if !a.acquire(cluster, giver) {
		return Block{}, busy
	}
	best, prev, got := a.search(giver, low, want)
	b := Block{}
	if got == served {
		b, got = a.cut(giver, best, prev, want)
	}
	w.lock.Swap(0)
	return b, got
}

// search walks giver's list for the best entry and its predecessor (0: the
// head): an exact fit at once, else the smallest of at least want, else the
// largest of at least low. Holding the lock.
//
// Nothing on the list is believed: each link must name a sealed entry of
// possible length, no link may come twice (Brent's method: the walker meets
// the turtle it left behind), and the count must hold. The bound is the count,
// which is itself held against the size of data.
func (a *Allocator) search(giver int, low, want uint32) (best entry, prev uint32, got outcome) {
	w := a.arenas[giver]
	count := w.entries.Load()
	if uint64(count)*entrySize > uint64(len(a.data)) {
		return best, 0, a.condemn(giver, badCount, count)
	}
	var seen, last, turtle uint32
	leap := uint32(1)
	for link := w.head.Load(); link != 0; {
		if link == turtle {
			return best, 0, a.condemn(giver, badCycle, link)
		}
		if seen == leap {
			turtle, leap = link, leap*2
		}
		if seen == count {
			return best, 0, a.condemn(giver, badCount, count)
		}
		e, why := a.read(link)
		if why != sound {
			return best, 0, a.condemn(giver, why, link)
		}
		if better(e.length, best.length, low, want) {
			best, prev = e, last
		}
		seen++
		if best.length == want || best.length != 0 && seen >= uint32(a.window) {
			return best, prev, served
		}
		last, link = link, e.next
	}
	if seen != count {
		return best, 0, a.condemn(giver, badCount, count)
	}
	if best.length == 0 {
		return best, 0, empty
	}
	return best, prev, served
}

// better says whether an entry of n bytes serves (low, want) better than one of
// best bytes, 0 for none.
func better(n, best, low, want uint32) bool {
	switch {
	case n < low:
		return false
	case n >= want:
		return best < want || n < best
	default:
		return best < want && n > best
	}
}

// cut takes want bytes off the end of e, which then stays where it is, or all
// of it where it has no more. The rest can always hold its header: lengths and
// requests are multiples of Align, and Align is the size of a header. Holding
// the lock.
func (a *Allocator) cut(giver int, e entry, prev, want uint32) (Block, outcome) {
	w := a.arenas[giver]
	n := min(e.length, want)
	if w.listed.Load() < uint64(n) {
		return Block{}, a.condemn(giver, badListed, e.length)
	}
	e.length -= n
	switch {
	case e.length >= entrySize:
		a.write(e)
	case prev == 0:
		a.forget(w, e)
		w.head.Store(e.next)
	default:
		a.forget(w, e)
		p := prev &^ 1
		a.write(entry{off: p, length: uint32(atomic.LoadUint64(a.word(p)) >> 32), next: e.next})
	}
	w.listed.Add(-uint64(n))
	w.reused.Add(uint64(n))
	return Block{e.off + e.length, n}, served
}

// forget breaks the seal of an entry that leaves the list, so that a link that
// still points there is found out.
func (a *Allocator) forget(w *arena, e entry) {
	atomic.StoreUint64(a.word(e.off+8), 0)
	w.entries.Add(^uint32(0))
}

// write stores e's first word: next in the low half, length in the high half.
func (a *Allocator) write(e entry) {
	atomic.StoreUint64(a.word(e.off), uint64(e.length)<<32|uint64(e.next))
}

// read is the entry that link names, or why there is none.
func (a *Allocator) read(link uint32) (entry, reason) {
	off := link &^ 1
	if link%Align != 1 || uint64(off)+entrySize > uint64(len(a.data)) {
		return entry{}, badLink
	}
	if atomic.LoadUint64(a.word(off+8)) != a.seal(off) {
		return entry{}, badSeal
	}
	first := atomic.LoadUint64(a.word(off))
	e := entry{off: off, length: uint32(first >> 32), next: uint32(first)}
	k := a.arenaOf(off)
	if e.length < entrySize || e.length%Align != 0 || uint64(off-a.base[k])+uint64(e.length) > uint64(a.size[k]) {
		return entry{}, badLength
	}
	return e, sound
}
