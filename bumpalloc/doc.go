// Package bumpalloc is the memory of one snapshot: an arena for each CPU
// cluster, from which workers take chunks while the machine stands still, and
// freelists of the tails they give back.
//
// Memory comes from the caller, twice: control words of fixed layout without
// pointers, and data. Both may be a mapped BPF map; inside them there are only
// offsets, so the in-kernel engine can work on the very same bytes.
//
// # Ladder
//
// A request goes down four rungs: the own arena, the other arenas (spill), the
// own freelist, the other freelists. AllocAtLeast says why in this order.
// Freed memory goes to the freelist of the cluster that frees it.
//
// # Layout, version 1
//
// Offsets in bytes, words in the machine's byte order. Control memory is one
// header and then one arena struct per cluster; arena i begins at 128 + 512·i.
//
//	header   0 u32 magic 0x41504d42   4 u32 version   8 u32 clusters
//	        12 u32 epoch   16 u64 data_size                  pad to 128
//	arena    0 u32 base   4 u32 size                         pad to 128
//	       128 u32 used  136 u64 spilled                     pad to 256
//	       256 u32 lock  260 u32 head  264 u32 entries
//	       272 u64 listed  280 u64 reused  288 u64 fault     pad to 384
//	       384 u64 allocs  392 frees  400 freed  408 spill
//	       416 foreign  424 busy  432 refused                pad to 512
//
// A freelist entry lies in the first 16 bytes of the freed memory. A link is an
// offset with bit 0 set, 0 for none.
//
//	0 u64  length<<32 | link of the next entry
//	8 u64  (0x7a11ed00 xor epoch)<<32 | link of this entry   (the seal)
//
// By hand: a 64-byte entry at 0x60, next at 0x00, in epoch 1, little-endian:
//
//	01 00 00 00  40 00 00 00  61 00 00 00  01 ed 11 7a
//
// # Pads
//
// Each group of words with one set of writers has 128 bytes of its own: x86
// fetches lines of 64 in pairs, arm64 lines go up to 128. The constants are
// apart because every request reads them while used changes under it. The bump
// words are apart from the freelist because taking is free of locks and must
// not slow down for a walk. The taker's counters are apart because only their
// own cluster touches them, at every request.
//
// # Fields
//
//	field              written by                    read by        ordered by
//	header, base,size  New, Reset; no worker runs    the BPF engine  magic, exchanged last
//	used               any taker                     any taker       compare-and-swap
//	spilled            the taker that won the swap   Stats           count only
//	lock               who takes or gives it         all             compare-and-swap; exchange
//	head               holder of lock                holder; others  lock; without it only "empty?"
//	entries, listed    holder of lock                holder; Stats   lock
//	reused             holder of lock                Stats           lock; never ahead of freed
//	fault              who finds a fault first       all             compare-and-swap from 0
//	allocs…refused     workers of this cluster       Stats           fetch-add; count only
//	entry words        holder of the list's lock     holder          lock
//	data               holder of the block           its holder      the swap, or lock, that gave it
//
// # Memory order
//
// What publishes and what observes are atomics whose old value is used:
// compare-and-swap on used and lock, exchange to release lock. These are fully
// ordered in Go and in BPF alike. The BPF side must use the same three and may
// not release the lock, or move used, by a __sync_fetch_and_add whose result is
// dropped: that compiles to an add without any order, and its plain loads order
// nothing on arm64. Whoever holds lock may use plain accesses for the words it
// guards. Go uses atomic loads and stores there only so that Stats may look on.
//
// # Invariants
//
//  1. The layout is the drawing above, and Go never believes a constant that
//     it reads back from it. Otherwise a stray write moves an arena.
//  2. used only grows, by compare-and-swap, to size at most: each byte is
//     bumped once, none past the end.
//  3. Two live blocks never overlap. A tail is on one list or in one hand.
//  4. The rungs are tried in order, and memory that leaves its cluster is
//     counted with giver and taker. Otherwise a slow capture has no cause.
//  5. With nobody inside, Used = live + Overhead, and Overhead = Free + what is lost
//     until Reset: nothing that did not come back into use goes unsaid.
//  6. Every loop is bounded: waits by the spin bound (ErrBusy), walks by the
//     entry count. Otherwise one dead worker holds the machine.
//  7. A word that cannot be right is reported (ErrCorrupt) and not followed;
//     its freelist is out of use until Reset, the other rungs go on.
//  8. No method but Err allocates, sleeps, or takes a Go mutex; errors are constants.
//     The Go threads that could finish such a wait do not run.
//  9. Reset begins a new epoch: an entry of an earlier round has no valid seal.
//
// Limits. The seal is kept by New over the same control memory, too; fresh
// control memory over used data begins at epoch 1 and may find a stale seal,
// which makes Free answer ErrDoubleFree, so pair them anew or give zeroed data.
// The double-free check sees only blocks that begin with a listed entry. An
// operation that finds the lock held is not queued: the lock is not fair.
package bumpalloc
