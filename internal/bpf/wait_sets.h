// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// The rows of the sets of poll, select and epoll. A set lies in user memory, so a row may be
// absent; an epoll's is a tree of the kernel's.
#ifndef STACKSHOT_WAIT_SETS_H
#define STACKSHOT_WAIT_SETS_H

enum { NONE_LEFT, FOUND, PASSED };

// read_half reads the next four bytes of user memory that were asked for. An address 0 was not
// asked for. There is only one such place: the verifier walks the page tables for each.
static __always_inline void read_half(struct wait_work *w)
{
	struct file_work *f = &w->f;
	u64 i = f->got, at = 0;
	hide(i);
	if (i >= FILE_HALVES)
		return;
	u32 v = 0;
	u64 va = f->va[i];
	if (va) {
		at = user_at(&w->mem, va);
		if (!at || bpf_probe_read_kernel(&v, sizeof(v), (void *)at))
			f->miss = 1;
	}
	f->half[i] = v;
	f->got = i + 1;
	if (f->got >= f->asked)
		f->phase = f->then;
}

// no_set ends a set of which a row is not there: one record says so.
static __always_inline int no_set(struct file_work *f)
{
	f->way = WAY_ABSENT;
	return PASSED;
}

static __always_inline int next_absent(struct file_work *f)
{
	f->way = WAY_NONE;
	f->fd = -1, f->events = 0;
	f->stop = 1;
	return FOUND;
}

// next_polled asks for the next entry of poll.
static __always_inline int next_polled(struct file_work *f)
{
	u64 i = f->turn, entries = (u32)f->arg[1];
	if (i >= entries)
		return NONE_LEFT;
	if (i >= POLL_LOOKED) {
		f->count += entries - i;
		return NONE_LEFT;
	}
	f->turn = i + 1;
	f->va[0] = f->arg[0] + 8 * i, f->va[1] = f->va[0] + 4;
	ask(f, 2, PHASE_POLLED);
	return PASSED;
}

// take_polled takes the entry: the descriptor, or -1; which events.
static __always_inline int take_polled(struct file_work *f)
{
	f->phase = PHASE_NEXT;
	if (f->miss)
		return no_set(f);
	f->fd = f->half[0], f->events = f->half[1] & 0xffff;
	return (s32)f->half[0] < 0 ? PASSED : FOUND;
}

// next_sets asks for the next 32 bits of each set of select. A set that is not given is empty.
static __always_inline void next_sets(struct file_work *f)
{
	u64 off = f->turn * 4;
	f->base = f->turn * 32;
	f->turn++;
	f->va[0] = f->arg[1] ? f->arg[1] + off : 0;
	f->va[1] = f->arg[2] ? f->arg[2] + off : 0;
	f->va[2] = f->arg[3] ? f->arg[3] + off : 0;
	ask(f, 3, PHASE_SETS);
}

static __always_inline void take_sets(struct file_work *f)
{
	u64 most = (u32)f->arg[0] - f->base, mask = most < 32 ? (1ull << (most & 31)) - 1 : ~0u;
	f->phase = PHASE_NEXT;
	f->bits[0] = f->half[0] & mask, f->bits[1] = f->half[1] & mask, f->bits[2] = f->half[2] & mask;
	if (f->miss)
		no_set(f);
}

// next_selected takes the next descriptor of the three sets.
static __noinline int next_selected(struct wait_work *w)
{
	struct file_work *f = &w->f;
	u64 any = f->bits[0] | f->bits[1] | f->bits[2];
	if (!any) {
		if (f->turn * 32 >= (u32)f->arg[0])
			return NONE_LEFT;
		if (f->turn >= SELECT_LOOKED / 32)
			return no_set(f);
		next_sets(f);
		return PASSED;
	}
	if (f->n >= WAIT_FILES) {
		f->count += __builtin_popcountll(any);
		f->bits[0] = f->bits[1] = f->bits[2] = 0;
		return PASSED;
	}
	u64 lowest = any & -any;
	f->fd = f->base + __builtin_popcountll(lowest - 1);
	f->events = (f->bits[0] & lowest ? 0x1 : 0) | (f->bits[1] & lowest ? 0x4 : 0) | (f->bits[2] & lowest ? 0x2 : 0);
	f->bits[0] &= ~lowest, f->bits[1] &= ~lowest, f->bits[2] &= ~lowest;
	return FOUND;
}

// next_watched takes the next node of an epoll's tree, in the tree's order: from is the node
// that the walk comes from, its parent on the way down.
static __noinline int next_watched(struct wait_work *w)
{
	struct file_work *f = &w->f;
	u64 node = memory_at(w, f->node, 64);
	if (!node || f->turn >= EPOLL_LOOKED * 4)
		return NONE_LEFT;
	f->turn++;
	u64 up = kernel_word(node) & ~3ull, left = field_at(node, P_NODE_LEFT), right = field_at(node, P_NODE_RIGHT), from = f->from, here = f->node;
	if (from == up && left) {
		f->from = here, f->node = left;
		return PASSED;
	}
	f->from = here, f->node = up;
	if (from == right && right)
		return PASSED;
	if (right)
		f->node = right;
	if (f->count > EPOLL_LOOKED)
		return NONE_LEFT;
	u64 item = node - cfg_place[P_EPI_NODE];
	f->file = field_at(item, P_EPI_FILE);
	f->fd = (u32)field_at(item, P_EPI_FD);
	f->events = (u32)field_at(item, P_EPI_EVENTS);
	return FOUND;
}

#endif
