// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// What a thread waits for: one record of what the kernel's own memory says, and the
// futex words of its call. A thread of which there is nothing to say has neither. The
// rules are those of record_task.h.
#ifndef STACKSHOT_RECORD_WAIT_H
#define STACKSHOT_RECORD_WAIT_H

struct wait_item { KC_ITEM(struct linux_wait, wait); };

// What all may take: no call has files beside futexes, which take less.
#define WAIT_MOST (sizeof(struct wait_item) + FILES_MOST)
_Static_assert(sizeof(((struct wait_work *)0)->futex) <= MOST_WRITTEN, "the sinks write the futexes");

// copy_stack copies the stack's words from where the thread sleeps, never beyond the saved
// user registers.
static __always_inline bool copy_stack(struct wait_work *w, struct task_struct *t)
{
	w->at = (u64)bpf_task_pt_regs(t);
	w->top = peek(w->at);
	w->at = (u64)t->stack;
	w->stack_at = peek(w->at);
	w->sp = task_sp(t);
	u64 len = w->top - w->sp;
	if (!linked(w->sp) || !linked(w->top) || w->sp < w->stack_at || w->top < w->sp)
		return 0;
	w->stack_size = (w->top + USER_REGS * 8 - w->stack_at + 4095) & ~4095ull;
	// The record is mostly in the first half, whose lines sink_fetch_stack has loaded.
	w->rest = 0;
	if (len > sizeof(w->stack))
		len = sizeof(w->stack);
	if (!cfg_wait_ring && len == sizeof(w->stack))
		w->rest = len = sizeof(w->stack) / 2;
	w->words = len / 8;
	hide(len);
	return len <= sizeof(w->stack) && !bpf_probe_read_kernel(w->stack, len, (void *)w->sp);
}

// In D are threads that signals do not wake (TASK_UNINTERRUPTIBLE, killable or not), less
// those that only idle (TASK_NOLOAD).
static __always_inline bool in_d(struct task_struct *t) { return (t->__state & 0x2) && !(t->__state & 0x400); }

// wait_scan is the scan of a thread in D of which no field names a lock. A thread that runs
// elsewhere changes its stack.
static __noinline void wait_scan(struct sink *s, struct wait_work *w, struct task_struct *t)
{
	if (!cfg_slow_len || w->v.kind || !sleeps(t) || !in_d(t) || runs_elsewhere(t))
		return;
	mark(w->v.flags, WAIT_SCANNED);
	w->v.scan = SCAN_UNREAD;
	if (copy_stack(w, t))
		scan_stack(s, w);
}

// put_waits writes the words as one array. Each is 96 bytes, so there is no padding. No call
// has both futexes and files.
static __noinline long put_waits(struct sink *s, struct wait_work *w)
{
	if (w->v.flags || w->v.files) {
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
	if (!cfg_wait)
		return 0;
	struct wait_work *w = my_wait_work();
	if (!w) // it is there; if this went on, the verifier would walk all that follows once more
		return NO_ROOM;
	wait_vfork(w, t); // the first: it begins the record
	wait_field(w, t);
	wait_pi(w, t);
	wait_scan(s, w, t);
	wait_owner(w, level);
	wait_marks(w, t);
	wait_peer(w, t, level);
	wait_futex(s, w, t);
	w->f.level = level;
	wait_files(s, w, t);
	return put_waits(s, w) ? NO_ROOM : put_files(s, w);
}

#endif
