// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// The descriptors of a call, one after another: those that it names, and the sets of poll,
// select and epoll. A set lies in user memory, so a row may be absent; an epoll's is a
// tree of the kernel's.
#ifndef STACKSHOT_WAIT_FILE_H
#define STACKSHOT_WAIT_FILE_H

// include/uapi/asm-generic/poll.h: POLLIN, PRI, RDNORM, RDBAND, RDHUP; POLLOUT, WRNORM, WRBAND.
enum { POLL_READS = 0x1 | 0x2 | 0x40 | 0x80 | 0x2000, POLL_WRITES = 0x4 | 0x100 | 0x200 };
enum { NONE_LEFT, FOUND, PASSED };

// half_at reads four bytes of user memory. False: they are not there.
static __always_inline bool half_at(struct wait_work *w, u64 va)
{
	u32 v = 0;
	u64 at = user_at(&w->mem, va);
	bool there = at && !bpf_probe_read_kernel(&v, sizeof(v), (void *)at);
	w->word = v;
	return there;
}

static __noinline bool user_half(struct wait_work *w, u64 va) { return half_at(w, va); }

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

// next_polled takes the next entry of poll: the descriptor, or -1; which events.
static __noinline int next_polled(struct wait_work *w)
{
	struct file_work *f = &w->f;
	u64 i = f->turn, va = f->arg[0] + 8 * i;
	if (i >= (u32)f->arg[1])
		return NONE_LEFT;
	if (i >= POLL_LOOKED) {
		f->count += (u32)f->arg[1] - i;
		return NONE_LEFT;
	}
	f->turn = i + 1;
	if (!half_at(w, va))
		return no_set(f);
	f->fd = w->word;
	if ((s32)w->word < 0)
		return PASSED;
	if (!half_at(w, va + 4))
		return no_set(f);
	f->events = w->word & 0xffff;
	return FOUND;
}

// load_sets reads the next 32 bits of each set of select. A set that is not given is empty.
static __noinline void load_sets(struct wait_work *w)
{
	struct file_work *f = &w->f;
	u64 off = f->turn * 4, most = (u32)f->arg[0] - f->turn * 32, mask = most < 32 ? (1ull << (most & 31)) - 1 : ~0u;
	f->base = f->turn * 32;
	f->turn++;
	f->bits[0] = f->bits[1] = f->bits[2] = 0;
	f->phase = PHASE_NEXT;
#pragma unroll
	for (u32 i = 0; i < 3; i++) {
		u64 set = f->arg[1 + i];
		if (set && !half_at(w, set + off))
			no_set(f);
		f->bits[i] = set ? w->word & mask : 0;
	}
}

// next_selected takes the next descriptor of the three sets.
static __noinline int next_selected(struct wait_work *w)
{
	struct file_work *f = &w->f;
	u64 any = f->bits[0] | f->bits[1] | f->bits[2];
	if (!any) {
		if (f->turn * 32 >= (u32)f->arg[0] || f->turn >= FILE_COUNTED / 32)
			return NONE_LEFT;
		f->phase = PHASE_SETS;
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

// next_named takes the descriptors that the call itself names: at most two, of which the
// second of splice is behind an offset. The set of an epoll comes behind itself.
static __noinline int next_named(struct wait_work *w)
{
	struct file_work *f = &w->f;
	u64 i = f->turn;
	f->turn = i + 1;
	f->events = 0;
	if (i == 0) {
		f->fd = (u32)f->arg[0];
		return FOUND;
	}
	if (f->way == WAY_EPOLL && f->one.kind == FILE_EPOLL && placed(P_EP_ROOT)) {
		u64 ep = memory_at(w, f->one.object, 128);
		f->node = ep ? field_at(ep, P_EP_ROOT) : 0;
		f->from = f->turn = 0;
		f->way = WAY_WATCHED;
		mark(f->flags, FILE_POLLED);
		return PASSED;
	}
	if (i > 1 || (f->way != WAY_TWO && f->way != WAY_SPLICE))
		return NONE_LEFT;
	f->fd = f->way == WAY_TWO ? (u32)f->arg[1] : (u32)f->arg[2];
	f->ends ^= FILE_TO_READ | FILE_TO_WRITE;
	f->op = f->ends & FILE_TO_READ ? FILE_OP_READ : FILE_OP_WRITE;
	return FOUND;
}

static __always_inline int next_file(struct wait_work *w)
{
	struct file_work *f = &w->f;
	f->file = 0;
	switch (f->way) {
	case WAY_NONE: return NONE_LEFT;
	case WAY_ABSENT: return next_absent(f);
	case WAY_POLL: return next_polled(w);
	case WAY_SELECT: return next_selected(w);
	case WAY_WATCHED: return next_watched(w);
	}
	return next_named(w);
}

// begin_file clears the records at hand and fills what the call says of the descriptor.
static __noinline void begin_file(struct wait_work *w)
{
	struct file_work *f = &w->f;
	struct linux_file *r = &f->one;
	__builtin_memset(r, 0, sizeof(*r));
	__builtin_memset(&f->sock, 0, sizeof(f->sock));
	r->op = f->op;
	r->fd = f->sock.fd = f->fd;
	r->events = f->events;
	r->flags = f->flags | f->ends;
	if (f->events & POLL_READS)
		mark(r->flags, FILE_TO_READ);
	if (f->events & POLL_WRITES)
		mark(r->flags, FILE_TO_WRITE);
	r->lock_how = f->lock_how, r->lock_start = f->lock_start, r->lock_len = f->lock_len;
}

// end_file keeps the records at hand.
static __noinline void end_file(struct wait_work *w)
{
	struct file_work *f = &w->f;
	u64 n = f->n, k = f->sockets;
	hide(n);
	hide(k);
	f->phase = PHASE_NEXT;
	if (n >= WAIT_FILES || k >= WAIT_FILES)
		return;
	if (f->one.kind == FILE_SOCKET && f->one.magic == MAGIC_SOCK) {
		f->one.bytes = f->sock.bytes_in;
		f->socks.v[k] = f->sock;
		f->sockets = k + 1;
	}
	f->files.v[n] = f->one;
	f->n = n + 1;
}

// take_file begins with the next descriptor. 1: there is none.
static __always_inline int take_file(struct wait_work *w)
{
	struct file_work *f = &w->f;
	f->stop = 0;
	peek(f->found) = next_file(w);
	u64 found = peek(f->found);
	if (found != FOUND)
		return found == NONE_LEFT;
	f->count++;
	if (f->n >= WAIT_FILES)
		return 0;
	begin_file(w);
	if (f->stop)
		mark(f->one.flags, FILE_NO_SET);
	f->phase = f->stop ? PHASE_END : PHASE_FILE;
	return 0;
}

// file_step takes one descriptor, one row of a set, what it leads to, or one part of a sum. 1:
// all are taken. Whoever looks at an object says what is next, or it is the end of it.
static __always_inline int file_step(struct sink *s, struct wait_work *w)
{
	struct file_work *f = &w->f;
	u64 phase = f->phase;
	if (phase == PHASE_NEXT)
		return take_file(w);
	if (phase == PHASE_SUM_PIPE)
		return sum_pipe(w);
	if (phase == PHASE_SUM_QUEUE)
		return sum_queue(w);
	f->phase = PHASE_END;
	switch (phase) {
	case PHASE_FILE:
		if (f->file || named_file(w))
			look_at_file(w);
		return 0;
	case PHASE_SETS: load_sets(w); return 0;
	case PHASE_ANON: look_at_anon(w); return 0;
	case PHASE_PIPE: look_at_pipe(w); return 0;
	case PHASE_SOCKET: look_at_socket(w); return 0;
	case PHASE_UNIX: look_at_unix(w); return 0;
	case PHASE_QUEUES: look_at_queues(w); return 0;
	case PHASE_CHAR: look_at_char(w); return 0;
	case PHASE_TTY: look_at_tty(w); return 0;
	case PHASE_FUSE: look_at_fuse(w); return 0;
	}
	end_file(w);
	return 0;
}
REPEATED(file_step)

#endif
