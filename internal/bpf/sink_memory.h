// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// What the two sinks that write into the region have in common: records are made in place, between
// pos and end of a SINK_WORK, which the sink's own header names. See sink_seq.h for what a
// sink is. The kernels that have these sinks (from 6.7 on) have bpf_rdonly_cast and
// open-coded iterators.
#ifndef STACKSHOT_SINK_MEMORY_H
#define STACKSHOT_SINK_MEMORY_H

struct sink {
	struct SINK_WORK *w;
};
#define kept(s) ((s)->w)

// What one process's mappings may take. record_maps makes sure of all of it at once.
#define MAP_BYTES (64 << 10)

static __always_inline void *sink_reserve(struct sink *s, u32 n)
{
	u32 pos = s->w->pos;
	if (s->w->end - pos < n)
		return 0;
	return region_at(pos, n);
}

// The record is in place already: commit only moves the position behind it.
static __always_inline long sink_commit(struct sink *s, u32 n)
{
	s->w->pos += n;
	return 0;
}

// The other functions of sink_seq.h: sink_write copies bytes that lie elsewhere, sink_piece
// gives room for a record that is written piece by piece. The caller has made sure of
// room for all of it (sink_room); sink_write checks that once more.
#define MOST_WRITTEN 16016
static __always_inline long sink_write(struct sink *s, void *from, u32 n, const u32 most)
{
	void *to = region_loose(s->w->pos, most);
	hide(n);
	if (!to || n > most || s->w->end - s->w->pos < n)
		return NO_ROOM;
	bpf_probe_read_kernel(to, n, from);
	return sink_commit(s, n);
}

#define SINK_PIECE (4096 + 16)
static __always_inline void *sink_piece(struct sink *s, u64 off) { return region_loose(s->w->pos + off, SINK_PIECE); }
static __always_inline long sink_commit_pieces(struct sink *s, u32 n) { return sink_commit(s, n); }

// Loads that may fault, and then give 0. They are cheaper than a helper call. The verifier
// takes our word for the type of what lies there; timespec64 is two plain words.
static __always_inline struct timespec64 *as_words(u64 at)
{
	return bpf_rdonly_cast((void *)at, bpf_core_type_id_kernel(struct timespec64));
}

static __always_inline u64 kernel_word(u64 at) { return as_words(at)->tv_sec; }

static __always_inline void kernel_pair(u64 at, u64 *pair)
{
	struct timespec64 *w = as_words(at);
	pair[0] = w->tv_sec;
	pair[1] = w->tv_nsec;
}

// The loop of these sinks: open-coded, so step needs no callback (sink_seq.h has one).
#define REPEATED(step)
#define repeat(n, step, s_, u_)   \
	turns(n) {                    \
		if (step(s_, u_))         \
			break;                \
	}

#endif
