// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// Package bumpalloc in BPF, on the layout and with the atomics that its doc.go
// draws: same rungs, same freelists. A worker asks for chunks, so of a freelist
// it takes the first entry that is large enough, and takes it whole.
#ifndef STACKSHOT_ARENA_H
#define STACKSHOT_ARENA_H

enum { ARENAS_MOST = 256, ARENA_WALK = 256, ARENA_SPIN = 1 << 14, ENTRY_SIZE = 16 };
#define SEAL_MAGIC 0x7a11ed00u

enum arena_fault { FAULT_LINK = 2, FAULT_SEAL, FAULT_LENGTH };

struct arena {
	u32 base, size, pad0[30];
	u32 used, pad1;
	u64 spilled, pad2[14];
	u32 lock, head, entries, pad3;
	u64 listed, reused, fault, pad4[11];
	u64 allocs, frees, freed, spill, foreign, busy, refused, pad5[9];
};

struct arenas {
	u32 magic, version, clusters, epoch;
	u64 data_size, pad[13];
	struct arena arena[ARENAS_MOST];
};

ONE_VALUE(arenas, struct arenas);

static __always_inline struct arenas *the_arenas(void)
{
	u32 zero = 0;
	return bpf_map_lookup_elem(&arenas, &zero);
}

static __always_inline struct arena *arena_at(struct arenas *a, u64 cluster)
{
	hide(cluster);
	return &a->arena[cluster & (ARENAS_MOST - 1)];
}

static __always_inline u64 seal_of(struct arenas *a, u32 off)
{
	return (u64)(SEAL_MAGIC ^ a->epoch) << 32 | (off | 1);
}

#define tally(word, n) ({ u64 was_ = __sync_fetch_and_add(&(word), (n)); hide(was_); })

// bump takes a chunk, or the rest if it holds need, from giver's arena.
static __noinline int bump(struct arena *a, struct trap_worker *w, u32 need, u32 want)
{
	turns_unless(ARENA_SPIN, pause_over()) {
		u32 used = peek(a->used), size = a->size;
		if (used > size)
			return 0;
		u32 n = size - used;
		if (n > want)
			n = want;
		if (n < need)
			return 0;
		if (__sync_val_compare_and_swap(&a->used, used, used + n) != used)
			continue;
		w->next_pos = a->base + used;
		w->next_end = a->base + used + n;
		return 1;
	}
	return 0;
}

static __noinline int arena_lock(struct arena *a, u32 cluster)
{
	turns_unless(ARENA_SPIN, pause_over()) {
		if (peek(a->lock) == 0 && __sync_val_compare_and_swap(&a->lock, 0, cluster + 1) == 0)
			return 1;
	}
	return 0;
}

static __always_inline void arena_unlock(struct arena *a)
{
	u32 was = __sync_lock_test_and_set(&a->lock, 0);
	hide(was);
}

// push_tail puts the rest of the worker's chunk on its own cluster's list.
static __noinline void push_tail(struct arenas *all, struct trap_worker *w)
{
	struct arena *a = arena_at(all, w->cluster);
	u32 pos = w->pos, end = w->end;
	w->pos = w->end = 0;
	if (end <= pos)
		return;
	u32 len = end - pos;
	tally(a->frees, 1);
	tally(a->freed, len);
	u64 *e = region_at(pos, ENTRY_SIZE);
	if (len < ENTRY_SIZE || (pos & 15) || !e)
		return;
	if (!arena_lock(a, w->cluster)) {
		tally(a->busy, 1);
		return;
	}
	if (!a->fault) {
		e[0] = (u64)len << 32 | a->head;
		e[1] = seal_of(all, pos);
		a->head = pos | 1;
		a->entries++;
		a->listed += len;
	}
	arena_unlock(a);
}

// unlink takes the entry at w->walk off the list. Holding the lock.
static __always_inline void unlink(struct arena *a, struct trap_worker *w, u64 *e, u32 len)
{
	u32 next = e[0];
	u64 *prev = region_at(w->walk_prev & ~1u, ENTRY_SIZE);
	if (w->walk_prev && prev)
		prev[0] = (prev[0] >> 32 << 32) | next;
	else
		a->head = next;
	e[1] = 0;
	a->entries--;
	a->listed -= len;
	a->reused += len;
	w->next_pos = w->walk & ~1u;
	w->next_end = w->next_pos + len;
}

static __noinline int take_locked(struct arenas *all, struct arena *a, struct trap_worker *w, u32 need)
{
	w->walk = a->head;
	w->walk_prev = 0;
	turns(ARENA_WALK) {
		u32 link = w->walk, off = link & ~1u;
		if (!link)
			return 0;
		u64 *e = region_at(off, ENTRY_SIZE), first;
		if (!e || (link & 15) != 1) {
			a->fault = (u64)FAULT_LINK << 32 | link;
			return 0;
		}
		if (e[1] != seal_of(all, off)) {
			a->fault = (u64)FAULT_SEAL << 32 | link;
			return 0;
		}
		first = e[0];
		u32 len = first >> 32;
		if (len < ENTRY_SIZE || (len & 15) || (u64)off + len > cfg_region_bytes) {
			a->fault = (u64)FAULT_LENGTH << 32 | link;
			return 0;
		}
		if (len >= need) {
			unlink(a, w, e, len);
			return 1;
		}
		w->walk_prev = link;
		w->walk = (u32)first;
	}
	return 0;
}

static __noinline int take(struct arenas *all, struct arena *a, struct trap_worker *w, u32 need)
{
	if (a->fault || !peek(a->head) || !arena_lock(a, w->cluster))
		return 0;
	int got = take_locked(all, a, w, need);
	arena_unlock(a);
	return got;
}

// giver_after steps w->giver to the next cluster, round and round.
static __always_inline u32 giver_after(struct arenas *all, struct trap_worker *w)
{
	u32 c = w->giver, next = c + 1;
	w->giver = next >= all->clusters ? 0 : next;
	return c;
}

// alloc_chunk goes down the rungs: own arena, the others (spill), own list, the
// others' lists. 1: next_pos and next_end are a chunk of at least need bytes.
static __always_inline int alloc_chunk(struct arenas *all, struct trap_worker *w, u32 need, u32 want)
{
	struct arena *mine = arena_at(all, w->cluster);
	need = (need + 15) & ~15u;
	want = want < need ? need : (want + 15) & ~15u;
	w->giver = w->cluster;
	turns(all->clusters) {
		u32 c = giver_after(all, w);
		struct arena *a = arena_at(all, c);
		if (!bump(a, w, need, want))
			continue;
		u64 far = c == w->cluster ? 0 : w->next_end - w->next_pos;
		w->spill += far;
		tally(mine->allocs, 1);
		tally(mine->spill, far);
		tally(a->spilled, far);
		return 1;
	}
	w->giver = w->cluster;
	turns(all->clusters) {
		u32 c = giver_after(all, w);
		if (!take(all, arena_at(all, c), w, need))
			continue;
		tally(mine->allocs, 1);
		tally(mine->foreign, c == w->cluster ? 0 : w->next_end - w->next_pos);
		return 1;
	}
	tally(mine->refused, 1);
	return 0;
}

#endif
