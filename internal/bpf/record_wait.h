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

// wait_sleeper looks at a thread that sleeps. In D are those that signals do not wake
// (TASK_UNINTERRUPTIBLE, killable or not), less those that only idle (TASK_NOLOAD).
static __always_inline void wait_sleeper(struct sink *s, struct wait_work *w, struct task_struct *t, u32 level)
{
	if (fields_asked()) {
		wait_field(w, t);
		if (!w->v.kind)
			wait_pi(w, t);
	}
	if (!w->v.kind && (t->__state & 0x2) && !(t->__state & 0x400))
		wait_scan(s, w, t);
	if (w->v.kind)
		wait_owner(w, level);
	if (BPF_CORE_READ_BITFIELD(t, in_iowait))
		mark(w->v.flags, WAIT_IO);
	if (is_frozen(t))
		mark(w->v.flags, WAIT_FROZEN);
	if (t->ptrace) {
		w->at = (u64)t->parent;
		wait_peer(w, WAIT_TRACED, peek(w->at), level);
	}
	if (has_user_regs(t))
		wait_futex(s, w, t);
}

static __always_inline long put_wait(struct sink *s, struct wait_work *w)
{
	if (!w->v.flags)
		return 0;
	struct wait_item *i = sink_reserve(s, sizeof(*i));
	if (!i)
		return NO_ROOM;
	kc_item_full(&i->wait, KC_LX_WAIT);
	i->wait.v = w->v;
	return sink_commit(s, sizeof(*i));
}

// record_wait writes both. A child whose parent waits in vfork has a record even if it
// runs. If a tracer is attached to it too, the record names who waits.
static __noinline long record_wait(struct sink *s, struct task_struct *t, u32 level)
{
	struct wait_work *w = cfg_wait ? my_wait_work() : 0;
	if (!w || t->exit_state)
		return 0;
	__builtin_memset(&w->v, 0, sizeof(w->v));
	w->next = 0;
	if (t->__state)
		wait_sleeper(s, w, t, level);
	vfork_waiter(w, t);
	if (peek(w->at))
		wait_peer(w, WAIT_VFORK, peek(w->at), level);
	if (put_wait(s, w) || put_futexes(s, w))
		return NO_ROOM;
	return 0;
}

#endif
