// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// Whether a thread still waits as it did in the window, and whether its process has a
// handler for signals.
#ifndef STACKSHOT_ENDS_THREAD_H
#define STACKSHOT_ENDS_THREAD_H

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct sigaction___e { void *sa_handler; };
struct k_sigaction___e { struct sigaction___e sa; };
struct sighand_struct___e { struct k_sigaction___e action[1]; };
#pragma clang attribute pop

enum { SIGNALS = 64, SIGNAL_IGNORED = 1 };
// glibc and musl keep these for themselves; every program with threads has a handler, which ends
// no wait.
enum { FIRST_OF_LIBC = 32, LAST_OF_LIBC = 33 };

struct handlers { u64 at; u32 found, unused; };

static long one_handler(u32 i, struct handlers *h)
{
	if (i + 1 >= FIRST_OF_LIBC && i + 1 <= LAST_OF_LIBC)
		return 0;
	h->found = word_of(h->at + i * bpf_core_type_size(struct k_sigaction___e), k_sigaction___e, sa.sa_handler) > SIGNAL_IGNORED;
	return h->found;
}

static __always_inline bool catches(struct task_struct *t)
{
	struct handlers h = { word_of((u64)t, task_struct___e, sighand) };
	if (!h.at)
		return 0;
	h.at += bpf_core_field_offset(((struct sighand_struct___e *)0)->action);
	bpf_loop(SIGNALS, one_handler, &h, 0);
	return h.found;
}

// look_at_thread: every sleep counts one switch when it begins. Who was woken, or runs, has
// left the wait even if it was not switched yet.
static __always_inline void look_at_thread(struct task_struct *t)
{
	struct thread_key key = { t->start_boottime, tid_in(t, cfg_level) };
	struct thread_asked *a = bpf_map_lookup_elem(&threads, &key);
	if (!a)
		return;
	u32 flags = THREAD_SEEN;
	if (t->nvcsw + t->nivcsw == a->switches && t->__state && !t->exit_state && !task_on_cpu(t))
		flags |= THREAD_STILL;
	if (catches(t))
		flags |= THREAD_CATCHES;
	a->flags = flags;
}

#endif
