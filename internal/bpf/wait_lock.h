// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// What a task itself says of its sleep: the lock, by its fields; its tracer, and who waits
// for it in vfork; whether it waits for I/O or is frozen.
#ifndef STACKSHOT_WAIT_LOCK_H
#define STACKSHOT_WAIT_LOCK_H

static __always_inline bool sleeps(struct task_struct *t) { return t->__state && !t->exit_state; }

// wait_field takes the lock from the fields of the task. The low bits of blocker are its
// kind, less one (include/linux/hung_task.h, BLOCKER_TYPE_*). blocked_on may be no lock
// while a waiter is being woken (PROXY_WAKING): such a word is no address.
static __noinline void wait_field(struct wait_work *w, struct task_struct *t)
{
	w->at = w->word = 0;
	if (!sleeps(t) || !fields_asked())
		return;
	if (bpf_core_field_exists(t->blocker))
		w->at = t->blocker;
	if (cfg_wait_mutex && bpf_core_field_exists(t->blocked_on))
		w->word = (u64)t->blocked_on;
	u64 lock = peek(w->at), mutex = peek(w->word);
	if (linked(lock & ~3ull)) {
		w->v.lock = lock & ~3ull;
		w->v.kind = LOCK_MUTEX + (lock & 3);
		mark(w->v.flags, WAIT_FIELD);
	} else if (linked(mutex)) {
		w->v.lock = mutex;
		w->v.kind = LOCK_MUTEX;
		mark(w->v.flags, WAIT_FIELD);
	}
}

// wait_pi takes the rt_mutex from the waiter record that the task names. On a kernel with
// PREEMPT_RT all sleeping locks are of that kind.
static __noinline void wait_pi(struct wait_work *w, struct task_struct *t)
{
	w->at = 0;
	if (bpf_core_field_exists(t->pi_blocked_on) && fields_asked() && sleeps(t) && !w->v.kind)
		w->at = (u64)t->pi_blocked_on;
	u64 waiter = peek(w->at);
	if (!linked(waiter))
		return;
	u64 lock = kernel_word(waiter + bpf_core_field_offset(((struct rt_mutex_waiter *)0)->lock));
	if (!linked(lock))
		return;
	w->v.lock = lock;
	w->v.kind = LOCK_RT_MUTEX;
	mark(w->v.flags, WAIT_PI);
}

// wait_vfork leaves in w->peer the task that waits in vfork for this one: the first of those
// who wait for its completion, which lies in the stack of the one who waits. If the list
// cannot be read, it is the task's parent. The completion of a kernel thread's end is in
// the same field.
static __noinline void wait_vfork(struct wait_work *w, struct task_struct *t)
{
	__builtin_memset(&w->v, 0, sizeof(w->v));
	w->at = (u64)t;
	w->task = peek(w->at);
	w->peer = w->at = 0;
	if (t->mm && !t->exit_state && !(t->flags & PF_KTHREAD_))
		w->at = (u64)t->vfork_done;
	u64 done = peek(w->at);
	if (!linked(done))
		return;
	u64 head = done + bpf_core_field_offset(((struct completion *)0)->wait.task_list), node = kernel_word(head);
	if (node == head) // being woken
		return;
	w->peer = (u64)t->real_parent;
	if (linked(node))
		w->peer = kernel_word(node - bpf_core_field_offset(((struct swait_queue *)0)->task_list) +
			bpf_core_field_offset(((struct swait_queue *)0)->task));
	mark(w->v.flags, WAIT_VFORK);
}

// wait_peer takes who has to do with this thread: who waits for it in vfork, else its tracer.
static __noinline void wait_peer(struct wait_work *w, struct task_struct *t, u32 level)
{
	if (sleeps(t) && t->ptrace) {
		mark(w->v.flags, WAIT_TRACED);
		if (!(w->v.flags & WAIT_VFORK))
			w->peer = (u64)t->parent;
	}
	if (!w->peer || !who_is(w, peek(w->peer), level))
		return;
	w->v.peer_tid = w->who.tid, w->v.peer_tgid = w->who.tgid;
	w->v.peer_start = w->who.start;
}

// The state of a task that is frozen since "freezer,sched: Rewrite core freezer logic"
// (in 6.1), and the bit of jobctl that the freezer of a control group sets. The task's
// own bit frozen alone says little: it is set wherever a task sleeps as if frozen, in
// vfork and in a stop too (cgroup_enter_frozen).
enum { TASK_FROZEN_ = 0x8000, JOBCTL_TRAP_FREEZE_ = 1 << 23 };

static __always_inline bool is_frozen(struct task_struct *t)
{
	if (t->__state & TASK_FROZEN_)
		return 1;
	return bpf_core_field_exists(t->frozen) && BPF_CORE_READ_BITFIELD(t, frozen) && (t->jobctl & JOBCTL_TRAP_FREEZE_);
}

// wait_marks notes what else the task's own fields say of its sleep.
static __noinline void wait_marks(struct wait_work *w, struct task_struct *t)
{
	if (!sleeps(t))
		return;
	if (BPF_CORE_READ_BITFIELD(t, in_iowait))
		mark(w->v.flags, WAIT_IO);
	if (is_frozen(t))
		mark(w->v.flags, WAIT_FROZEN);
}

#endif
