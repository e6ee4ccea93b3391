// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// The sink of a panic: one run of memory, from the first record to the last. What does not fit
// any more ends the walk.
#ifndef STACKSHOT_SINK_LINE_H
#define STACKSHOT_SINK_LINE_H

#define SINK_WORK panic_work
#include "sink_memory.h"

static __always_inline int sink_room(struct sink *s, u32 n) { return s->w->end - s->w->pos >= n; }

// Nothing is loaded ahead: a panic is in no hurry, and each branch costs the verifier of 6.12.
static __always_inline void sink_fetch_stack(struct task_struct *t) {}
static __always_inline void sink_fetch_user(u64 at) {}

// Nobody measures a walk thread by thread, and nobody compares it a second time.
static __always_inline void sink_unwound(struct sink *s, u64 ns) {}
static __always_inline void sink_count(struct sink *s, struct linux_thread *r) {}

#define MAP_WALK_NS 2000000

#endif
