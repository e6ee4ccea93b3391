// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// The descriptors of a call, one after another: those that it names, and the rows of its set
// (wait_sets.h).
#ifndef STACKSHOT_WAIT_FILE_H
#define STACKSHOT_WAIT_FILE_H

// include/uapi/asm-generic/poll.h: POLLIN, PRI, RDNORM, RDBAND, RDHUP; POLLOUT, WRNORM, WRBAND.
enum { POLL_READS = 0x1 | 0x2 | 0x40 | 0x80 | 0x2000, POLL_WRITES = 0x4 | 0x100 | 0x200 };

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
	case WAY_POLL: return next_polled(f);
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
		*(u64 *)(&f->socks.v[k] + 1) = 0; // the array's padding, if it is the last
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
	peek(f->found) = f->phase == PHASE_POLLED ? take_polled(f) : next_file(w);
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
	if (phase == PHASE_NEXT || phase == PHASE_POLLED)
		return take_file(w);
	if (phase == PHASE_READ) {
		read_half(w);
		return 0;
	}
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
	case PHASE_SETS: take_sets(f); return 0;
	case PHASE_LOCK: take_lock(f); return 0;
	case PHASE_SOCKETCALL: take_socketcall(f); return 0;
	case PHASE_ANON: look_at_anon(w); return 0;
	case PHASE_PIPE: look_at_pipe(w); return 0;
	case PHASE_SOCKET: look_at_socket(w); return 0;
	case PHASE_UNIX: look_at_unix(w); return 0;
	case PHASE_PEER: look_at_peer(w); return 0;
	case PHASE_QUEUES: look_at_queues(w); return 0;
	case PHASE_CHAR: look_at_char(w); return 0;
	case PHASE_TTY: look_at_tty(w); return 0;
	case PHASE_FUSE: look_at_fuse(w); return 0;
	}
	end_file(w);
	return 0;
}

// The loop calls back in the trap, too: 6.12's verifier walks a third more of an open-coded one.
struct file_loop { struct sink *s; struct wait_work *w; };

static long file_turn(u32 i, struct file_loop *l) { return file_step(l->s, l->w); }

static __always_inline void file_turns(u32 n, struct sink *s, struct wait_work *w)
{
	struct file_loop l = { .s = s, .w = w };
	bpf_loop(n, file_turn, &l, 0);
}

#endif
