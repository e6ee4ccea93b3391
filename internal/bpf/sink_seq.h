// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// A sink is where records go. Record code reserves room for its largest form,
// writes in place, and commits the real size; it knows no program type, and is
// compiled once for each sink, of which a translation unit includes one. This
// one is a seq file: room is the worker's scratch, commit copies it into the
// file's buffer. A commit that does not fit makes the kernel take back the
// whole object and show it again on the next read, so record code must give
// the same bytes when it is run twice.
#ifndef STACKSHOT_SINK_SEQ_H
#define STACKSHOT_SINK_SEQ_H

#define SCRATCH_SIZE (MAX_FRAMES * 8 + 1024)

struct scratch { u8 room[SCRATCH_SIZE]; };

struct sink {
	struct seq_file *seq;
	struct scratch *scratch;
	u64 open;    // id of the thread container begun last
	u64 shallow; // its task is in no deeper pid namespace than ours
	struct laps laps;
};

// kept(s) holds what a sink keeps from thread to thread: open, shallow, laps.
#define kept(s) (s)

// sink_reserve gives room for n bytes; no record is larger than the scratch.
static __always_inline void *sink_reserve(struct sink *s, u32 n) { return s->scratch->room; }

// sink_room makes sure of n bytes for the records that follow.
static __always_inline int sink_room(struct sink *s, u32 n) { return 1; }

static __always_inline long sink_commit(struct sink *s, u32 n)
{
	return bpf_seq_write(s->seq, s->scratch->room, n);
}

static __always_inline void sink_unwound(struct sink *s, u64 ns) {}

// sink_fetch_stack: the kernels that need this sink have no bpf_rdonly_cast.
static __always_inline void sink_fetch_stack(struct task_struct *t) {}

// sink_count: the second pass compares thread by thread here.
static __always_inline void sink_count(struct sink *s, struct linux_thread *r) {}

#endif
