// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// The sink of the trap: chunks of the mapped region, written in place. The rest of a chunk
// serves the next record, of whatever task. If it is too short, it goes to the freelist
// and the worker takes a new chunk. The records of one item are then a list of pieces,
// which collation joins. See sink_seq.h for what a sink is.
#ifndef STACKSHOT_SINK_REGION_H
#define STACKSHOT_SINK_REGION_H

#define SINK_WORK trap_worker
#include "sink_memory.h"

// end_piece adds what was written since piece_from to the part at work. The first piece
// stands in the part itself, since most parts have only one. The others come from a
// pool; a fetch-and-add gives each place to one worker. Links are place plus one, so 0 is
// the end. 0: the pool is empty.
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

// next_chunk goes on in a new chunk of need bytes or more. The order: the new chunk is taken
// first, so the old one stays if there is none; then the piece is ended, while pos still
// says how far it was written; push_tail, which clears pos, comes last.
static __noinline int next_chunk(struct trap_worker *w, u32 need)
{
	struct stop *s = the_stop();
	struct arenas *a = the_arenas();
	if (!s || !a)
		return 0;
	if (!alloc_chunk(a, w, need, s->chunk) || !end_piece(s, w)) {
		if (!pause_over()) { // else a lock or a swap was given up
			trace_now(TRACE_NO_SPACE, w->number);
			stop_no_space(s, w->pause_by);
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

// sink_room makes sure of n bytes in one chunk. It is asked once for everything that a
// thread may take: the verifier spends much on each place that can change the chunk.
// So sink_reserve never changes it, and only checks.
static __always_inline int sink_room(struct sink *s, u32 n)
{
	return s->w->end - s->w->pos >= n || next_chunk(s->w, n);
}

// fetch_word loads a word of the kernel's memory, wherever it is. A load by a cast pointer
// has an entry in the exception table: if it faults, it gives 0.
static __always_inline void fetch_word(u64 at)
{
	struct list_head *l = bpf_rdonly_cast((void *)at, bpf_core_type_id_kernel(struct list_head));
	fetch(l->next);
}

// sink_fetch_stack loads what the unwinder and record_user will read: the saved user
// registers at the end of the kernel stack, and 512 bytes from where the thread sleeps,
// which most unwinding stays in, never beyond the registers. A zombie has no stack.
static __always_inline void sink_fetch_stack(struct task_struct *t)
{
	if (t->exit_state)
		return;
	u64 regs = bpf_task_pt_regs(t), sp = task_sp(t);
	if (!kernels(regs) || !kernel_half(sp)) // the stack is gone since
		return;
	fetch_word(regs);
	fetch_word(regs + 64);
	fetch_word(regs + 128);
#pragma unroll
	for (u32 at = 0; at < 512; at += 64)
		if (sp + at < regs)
			fetch_word(sp + at);
}

// sink_fetch_user loads a word of each cache line of the KiB at `at`: a chain leads from
// one line to the next and would wait for each. An address beyond the end of the 4 KiB
// wraps to their start, so that nothing but this page is touched.
static __always_inline void sink_fetch_user(u64 at)
{
#pragma unroll
	for (u32 off = 0; off < 1024; off += 64)
		fetch(kernel_word((at & ~4095ull) | ((at + off) & 4095)));
}

static __always_inline void sink_unwound(struct sink *s, u64 ns) { s->w->unwind_ns += ns; }

// sink_count adds a thread to its part's sums, which the second pass compares. It takes the
// recorded values: a later read could hide that the thread ran in between.
static __always_inline void sink_count(struct sink *s, struct linux_thread *r)
{
	make_stale(r);
	s->w->switches += r->nvcsw + r->nivcsw;
	s->w->runtime += r->sum_exec_runtime;
}

// A walk over mappings may take longer than a kernel that panics is to wait for.
#define MAP_WALK_NS (panicked() ? 0 : 2000000)

#endif
