// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// How much lies in a pipe. Its ring of buffers is read without its lock, so the sum may be of
// two moments.
#ifndef STACKSHOT_ENDS_PIPE_H
#define STACKSHOT_ENDS_PIPE_H

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct pipe_buffer___e { u32 len; };
struct pipe_inode_info___e { u32 head, tail, ring_size; void *bufs; };
#pragma clang attribute pop

enum { PIPE_LONG = 256 };

static long sum_buffer(u32 i, struct ends_work **work)
{
	struct ends_work *w = *work;
	u32 tail = w->before;
	if (tail == (u32)w->head)
		return 1;
	w->bytes += (u32)word_of(w->at + (tail & w->state) * bpf_core_type_size(struct pipe_buffer___e), pipe_buffer___e, len);
	w->before = tail + 1;
	return 0;
}

static __noinline void pipe_bytes(struct ends_work *w)
{
	u64 pipe = w->s.object;
	if (!pipe)
		return;
	w->bytes = 0;
	w->at = word_of(pipe, pipe_inode_info___e, bufs);
	w->head = (u32)word_of(pipe, pipe_inode_info___e, head);
	w->before = (u32)word_of(pipe, pipe_inode_info___e, tail);
	w->state = (u32)word_of(pipe, pipe_inode_info___e, ring_size) - 1; // a power of two
	bpf_loop(PIPE_LONG, sum_buffer, &w, 0);
	w->out.v.bytes_in = w->bytes;
}

#endif
