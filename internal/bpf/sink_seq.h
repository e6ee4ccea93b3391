// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// A sink is where records go. Record code reserves room for its largest form, writes in
// place, and commits the real size. It does not depend on a program type. A translation
// unit includes one sink, and the record code is compiled against that.
//
// This sink is a seq file: room is the worker's scratch, and commit copies it into the
// file's buffer. If a commit does not fit, the kernel takes back the whole object and
// shows it again on the next read. So record code must give the same bytes when it is
// run twice.
#ifndef STACKSHOT_SINK_SEQ_H
#define STACKSHOT_SINK_SEQ_H

// As large as the kernel allows for an element of a per-CPU map (PCPU_MIN_UNIT_SIZE). The
// largest record is the bytes of a user stack.
#define SCRATCH_SIZE (32 << 10)

// What one process's mappings may take: they are one object of the file, whose
// buffer is 32 KiB (kernel/bpf/bpf_iter.c).
#define MAP_BYTES (24 << 10)

struct scratch { u8 room[SCRATCH_SIZE]; };

struct sink {
	struct seq_file *seq;
	struct scratch *scratch;
	u64 open;    // id of the thread container begun last
	u64 shallow; // its task is in no deeper pid namespace than ours
	struct laps laps;
};

// kept(s) holds what a sink keeps from thread to thread: open, shallow, laps. Here each
// program run has its own; the trap keeps them in map memory (trap.h says why).
#define kept(s) (s)

// sink_reserve gives room for n bytes; no record is larger than the scratch.
static __always_inline void *sink_reserve(struct sink *s, u32 n) { return s->scratch->room; }

// sink_room makes sure of n bytes for the records that follow. Here there is nothing to do:
// the kernel checks the room at each commit.
static __always_inline int sink_room(struct sink *s, u32 n) { return 1; }

static __always_inline long sink_commit(struct sink *s, u32 n)
{
	return bpf_seq_write(s->seq, s->scratch->room, n);
}

// sink_write commits n bytes, at most most, that lie in map memory. None is more than
// MOST_WRITTEN.
#define MOST_WRITTEN 16016
static __always_inline long sink_write(struct sink *s, void *from, u32 n, const u32 most)
{
	hide(n);
	return n > most ? NO_ROOM : bpf_seq_write(s->seq, from, n);
}

// sink_piece is room for SINK_PIECE bytes at off of the record to be committed
// by sink_commit_pieces.
#define SINK_PIECE (4096 + 16)
static __always_inline void *sink_piece(struct sink *s, u64 off)
{
	hide(off);
	return off > SCRATCH_SIZE - SINK_PIECE ? 0 : s->scratch->room + off;
}

static __always_inline long sink_commit_pieces(struct sink *s, u32 n)
{
	hide(n);
	return n > SCRATCH_SIZE ? NO_ROOM : bpf_seq_write(s->seq, s->scratch->room, n);
}

// repeat calls step(s, u) until it returns 1, n times at most. It uses bpf_loop: the
// kernels that need this sink have no open-coded iterators.
struct repeated { struct sink *s; void *u; };
#define REPEATED(step) \
	static long step##_turn(u32 i, struct repeated *r) { return step(r->s, r->u); }
#define repeat(n, step, s_, u_)                          \
	do {                                                 \
		struct repeated r_ = { .s = (s_), .u = (u_) };   \
		bpf_loop(n, step##_turn, &r_, 0);                \
	} while (0)

// sink_unwound: the trap sums up the time in the unwinder per worker; pull has no such sum.
static __always_inline void sink_unwound(struct sink *s, u64 ns) {}

// sink_fetch_stack: the kernels that need this sink have no bpf_rdonly_cast.
static __always_inline void sink_fetch_stack(struct task_struct *t) {}

// sink_fetch_user: without the cast each load would be a helper call, which costs more than
// the wait that it saves.
static __always_inline void sink_fetch_user(u64 at) {}

// sink_count: there are no parts here. The second pass (recount) shows each thread's counts,
// and the loader compares them.
static __always_inline void sink_count(struct sink *s, struct linux_thread *r) {}

#define MAP_WALK_NS 2000000

#endif
