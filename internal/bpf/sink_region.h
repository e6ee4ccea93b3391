// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// The sink of the trap: chunks of the mapped region, written in place. What is
// left of a chunk serves the next record, of whatever task; when it is too
// short it goes to the freelist and a new chunk is taken. What one item brought
// is then a list of pieces. See sink_seq.h for what a sink is.
#ifndef STACKSHOT_SINK_REGION_H
#define STACKSHOT_SINK_REGION_H

struct sink {
	struct trap_worker *w;
};
#define kept(s) ((s)->w)

// end_piece books what was written since piece_from to the part at work.
static __noinline int end_piece(struct stop *s, struct trap_worker *w)
{
	u32 len = w->pos - w->piece_from;
	struct trap_part *p = part_of(w->number - 1);
	if (!p || w->pos == w->piece_from)
		return 1;
	if (!p->len) {
		p->off = w->piece_from, p->len = len;
		return 1;
	}
	u32 n = __sync_fetch_and_add(&s->pieces, 1);
	struct trap_piece *next = piece_of(n);
	if (!next)
		return 0;
	next->off = w->piece_from, next->len = len, next->more = 0;
	u32 last = w->last_piece;
	w->last_piece = n + 1;
	if (!last) {
		p->more = n + 1;
		return 1;
	}
	struct trap_piece *before = piece_of(last - 1);
	if (!before)
		return 0;
	before->more = n + 1;
	return 1;
}

static __noinline int next_chunk(struct trap_worker *w, u32 need)
{
	struct stop *s = the_stop();
	struct arenas *a = the_arenas();
	if (!s || !a)
		return 0;
	if (!alloc_chunk(a, w, need, s->chunk) || !end_piece(s, w)) {
		if (!pause_over()) { // else a lock or a swap was given up
			trace_now(TRACE_NO_SPACE, w->number);
			stop_no_space(s);
		}
		return 0;
	}
	if (cfg_latency)
		trace_at(w->clock, TRACE_CHUNK, w->next_end - w->next_pos);
	push_tail(a, w);
	w->piece_from = w->pos = w->next_pos;
	w->end = w->next_end;
	return 1;
}

// sink_room makes sure of n bytes in one chunk: once for everything a thread may
// take, since each place that can change the chunk is dear to the verifier.
static __always_inline int sink_room(struct sink *s, u32 n)
{
	return s->w->end - s->w->pos >= n || next_chunk(s->w, n);
}

static __always_inline void *sink_reserve(struct sink *s, u32 n)
{
	u32 pos = s->w->pos;
	if (s->w->end - pos < n)
		return 0;
	return region_at(pos, n);
}

static __always_inline long sink_commit(struct sink *s, u32 n)
{
	s->w->pos += n;
	return 0;
}

// fetch_word loads a word of the kernel's memory wherever it is. An address that
// is none of the kernel's gives 0.
static __always_inline void fetch_word(u64 at)
{
	struct list_head *l = bpf_rdonly_cast((void *)at, bpf_core_type_id_kernel(struct list_head));
	fetch(l->next);
}

// sink_fetch_stack loads what the unwinder and record_user will read: the stack
// from where the thread sleeps, as deep as is usual and never beyond its end,
// and the saved registers there. A zombie has no stack.
static __always_inline void sink_fetch_stack(struct task_struct *t)
{
	if (t->exit_state)
		return;
	u64 regs = bpf_task_pt_regs(t), sp = task_sp(t);
	fetch_word(regs);
	fetch_word(regs + 64);
	fetch_word(regs + 128);
#pragma unroll
	for (u32 at = 0; at < 512; at += 64)
		if (sp + at < regs)
			fetch_word(sp + at);
}

static __always_inline void sink_unwound(struct sink *s, u64 ns) { s->w->unwind_ns += ns; }

// sink_count adds a thread to its part's sums: what the second pass compares.
static __always_inline void sink_count(struct sink *s, struct linux_thread *r)
{
	if (cfg_stale_tid && r->tid == cfg_stale_tid)
		r->nvcsw--;
	s->w->switches += r->nvcsw + r->nivcsw;
	s->w->runtime += r->sum_exec_runtime;
}

#endif
