// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// What a thread waits for: one record of what the kernel's own memory says, and the
// futex words of its call. A thread of which there is nothing to say has neither. The
// rules are those of record_task.h.
#ifndef STACKSHOT_RECORD_WAIT_H
#define STACKSHOT_RECORD_WAIT_H

struct wait_item { KC_ITEM(struct linux_wait, wait); };

// What both may take.
#define WAIT_MOST (sizeof(struct wait_item) + sizeof(((struct wait_work *)0)->futex))
_Static_assert(sizeof(((struct wait_work *)0)->futex) <= MOST_WRITTEN, "the sinks write the futexes");

// put_waits writes the words as one array. Each is 96 bytes, so there is no padding.
static __noinline long put_waits(struct sink *s, struct wait_work *w)
{
	if (w->v.flags) {
		struct wait_item *i = sink_reserve(s, sizeof(*i));
		if (!i)
			return NO_ROOM;
		kc_item_full(&i->wait, KC_LX_WAIT);
		i->wait.v = w->v;
		if (sink_commit(s, sizeof(*i)))
			return NO_ROOM;
	}
	u64 n = w->next;
	if (!n)
		return 0;
	w->futex.h.type = KC_ARRAY_PAD0;
	w->futex.h.size = n * sizeof(w->futex.v[0]);
	w->futex.h.flags = ((u64)KC_LX_FUTEX << 32) | n;
	return sink_write(s, &w->futex, sizeof(w->futex.h) + n * sizeof(w->futex.v[0]), sizeof(w->futex));
}

// record_wait writes both. A child whose parent waits in vfork has a record even if it
// runs. Each step decides for itself whether it has anything to do: for whatever a branch
// here left in a register, the verifier would walk all that follows once more. It is
// inline since no more than eight functions may stand one above the other.
static __always_inline long record_wait(struct sink *s, struct task_struct *t, u32 level)
{
	struct wait_work *w = cfg_wait ? my_wait_work() : 0;
	if (!w)
		return 0;
	wait_vfork(w, t); // the first: it begins the record
	wait_field(w, t);
	wait_pi(w, t);
	wait_scan(s, w, t);
	wait_owner(w, level);
	wait_marks(w, t);
	wait_peer(w, t, level);
	wait_futex(s, w, t);
	return put_waits(s, w);
}

#endif
