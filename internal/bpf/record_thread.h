// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// How a thread is recorded: its head and its kernel stack, in one reservation.
// The rules are those of record_task.h. In the window a thread of a stopped CPU does not
// change. A thread on a CPU that was not stopped may change between any two reads;
// record_stack shows how that is noticed.
#ifndef STACKSHOT_RECORD_THREAD_H
#define STACKSHOT_RECORD_THREAD_H

struct thread_head {
	struct kc_container begin;
	KC_ITEM(struct thread_snapshot, snap);
	struct { struct kc_header h; char v[64]; } name;
	KC_ITEM(struct cpu_times, times);
	KC_ITEM(struct linux_thread, lx);
	KC_ITEM(struct linux_signals, sig);
};

// mark_state sets ths_state, XNU's state bits, from __state and exit_state
// (include/linux/sched.h: TASK_INTERRUPTIBLE 1, UNINTERRUPTIBLE 2, STOPPED 4, TRACED 8,
// PARKED 0x40, NOLOAD 0x400; EXIT_DEAD 0x10, EXIT_ZOMBIE 0x20). A task that waits with
// NOLOAD (TASK_IDLE) takes no signals, but is not counted as load: not TH_UNINT.
static __always_inline void mark_state(struct thread_snapshot *v, u32 state, u32 exit_state)
{
	v->ths_state = 0;
	if (exit_state) {
		mark(v->ths_state, TH_TERMINATE);
		return;
	}
	if (!state)
		mark(v->ths_state, TH_RUN);
	else
		mark(v->ths_state, TH_WAIT);
	if (state & (0x4 | 0x8))
		mark(v->ths_state, TH_SUSP);
	if ((state & 0x2) && !(state & 0x400))
		mark(v->ths_state, TH_UNINT);
}

// fill_thread fills the Linux record. Each field comes from the task itself. The room that
// a sink gives may hold old bytes, so fields without a value are set to 0.
static __noinline void fill_thread(struct linux_thread *r, struct task_struct *t, u32 level)
{
	r->present = THREAD_HAS_TIMES | THREAD_HAS_SWITCHES | THREAD_HAS_FAULTS | THREAD_HAS_PRIO |
		THREAD_HAS_START | THREAD_HAS_STACK | THREAD_HAS_EXIT_CODE | THREAD_HAS_ONCPU | THREAD_HAS_MONOTONIC;
	r->tid = tid_in(t, level);
	r->tgid = tgid_in(t, level);
	r->state = t->__state;
	r->exit_state = t->exit_state;
	r->flags = t->flags;
	r->cpu = t->thread_info.cpu;
	r->policy = t->policy;
	r->prio = t->prio, r->static_prio = t->static_prio, r->normal_prio = t->normal_prio;
	r->rt_priority = t->rt_priority;
	r->nice = t->static_prio - 120; // PRIO_TO_NICE, include/linux/sched/prio.h
	r->exit_code = t->exit_code;
	r->start_time = t->start_time, r->start_boottime = t->start_boottime;
	r->utime = t->utime, r->stime = t->stime;
	r->sum_exec_runtime = t->se.sum_exec_runtime;
	r->exec_start = t->se.exec_start;
	r->nvcsw = t->nvcsw, r->nivcsw = t->nivcsw;
	r->min_flt = t->min_flt, r->maj_flt = t->maj_flt;
	r->kstack_err = r->kstack_depth = 0;
	r->fs_base = r->displaced_ns = 0;
	r->kstack_skipped = r->reserved = 0;
	if (bpf_core_field_exists(t->sched_info.last_arrival)) { // CONFIG_SCHED_INFO
		r->run_delay = t->sched_info.run_delay;
		r->pcount = t->sched_info.pcount;
		r->last_arrival = t->sched_info.last_arrival;
		r->last_queued = t->sched_info.last_queued;
		mark(r->present, THREAD_HAS_SCHED_INFO | THREAD_HAS_RUNTIME);
		if (!r->pcount && !r->last_arrival && !(r->nvcsw + r->nivcsw)) // idle threads are not counted there
			mark(r->present, THREAD_NEVER_RAN);
	} else {
		r->run_delay = r->pcount = r->last_arrival = r->last_queued = 0;
	}
	if (r->tgid == cfg_self_tgid)
		mark(r->present, THREAD_IS_SELF);
}

// fill_times computes user and system time as /proc shows them: the kernel takes the
// ratio of the tick-based times and applies it to the exact run time (cputime_adjust,
// kernel/sched/cputime.c). BPF has no 128-bit product. So the ratio is taken in steps
// of 2^-20, and the run time is multiplied in two halves: nothing overflows 64 bits.
static __noinline void fill_times(struct cpu_times *v, struct linux_thread *r)
{
	u64 rt = r->sum_exec_runtime, ticks = r->utime + r->stime, sys = 0;
	if (r->stime && ticks) {
		u64 st = r->stime;
		if (ticks >> 43) { // more than 2.4 hours: st << 20 would overflow; steps of 1 ms are enough
			st >>= 20;
			ticks >>= 20;
		}
		u64 share = ticks ? (st << 20) / ticks : 0;
		sys = (rt >> 20) * share + (((rt & 0xfffff) * share) >> 20);
	}
	if (sys > rt)
		sys = rt;
	v->user_usec = (rt - sys) / 1000;
	v->system_usec = sys / 1000;
	v->runnable_usec = (rt + r->run_delay) / 1000;
}

// fill_thread_snapshot fills XNU's record from ours. Its tools expect it for each thread;
// what Linux has nothing for is 0.
static __noinline void fill_thread_snapshot(struct thread_snapshot *v, struct linux_thread *r, struct task_struct *t)
{
	v->ths_wait_event = v->ths_continuation = v->ths_total_syscalls = v->ths_voucher_identifier = 0;
	v->ths_dqserialnum = 0;
	v->ths_sched_flags = 0;
	v->ths_eqos = v->ths_rqos = v->ths_rqos_override = v->ths_io_tier = 0;
	v->ths_thread_t = v->ths_requested_policy = v->ths_effective_policy = 0;
	v->ths_thread_id = r->tid;
	v->ths_user_time = r->utime;
	v->ths_sys_time = r->stime;
	v->ths_ss_flags = SS_KERNEL64;
	if (t->mm)
		mark(v->ths_ss_flags, SS_USER64);
	if (r->tid == r->tgid)
		mark(v->ths_ss_flags, THS_MAIN);
	if (r->on_cpu)
		mark(v->ths_ss_flags, THS_ONCORE);
	if (r->present & THREAD_TRUNCATED)
		mark(v->ths_ss_flags, THS_TRUNCKERN);
	v->ths_last_run_time = r->last_arrival;
	v->ths_last_made_runnable_time = r->last_queued;
	mark_state(v, r->state, r->exit_state);
	// XNU counts upwards, Linux downwards: 139 is Linux's last priority.
	v->ths_base_priority = 139 - r->static_prio;
	v->ths_sched_priority = 139 - r->prio;
}

// mark_on_cpu decides whether the thread was on its CPU when the stop took that CPU.
// task_on_cpu alone would name our worker. The switch hook has noted in slot `of` which
// thread the worker displaced. If one of our ordinary threads had displaced another
// thread shortly before, and that thread still waits to run there, it counts too.
// Our own threads on a CPU are marked as well.
// Without a note (ran_known 0) the task's own flag is all there is.
static __always_inline void mark_on_cpu(struct task_struct *t, struct linux_thread *r, struct cpu_slot *of)
{
	if (!of || !of->ran_known || !r->tid) {
		r->on_cpu = task_on_cpu(t) != 0;
		return;
	}
	r->on_cpu = (of->ran_tid == r->tid) || (task_on_cpu(t) && (r->present & THREAD_IS_SELF));
	if (!r->on_cpu && of->displaced_tid == r->tid && !r->state) {
		r->on_cpu = 1;
		r->displaced_ns = of->stop_ns - of->displaced_at;
		mark(r->present, THREAD_DISPLACED);
	}
}

// has_user_regs says whether saved user registers exist. A thread that never runs in user
// mode has none. A zombie's kernel stack, where they are saved, may be gone. A thread
// that is exiting and has given up its memory still has them.
static __always_inline bool has_user_regs(struct task_struct *t)
{
	return !(t->flags & NO_USER_SIDE) && !t->exit_state;
}

// mark_user adds what only a thread with user space has: its thread pointer, and whether
// it was in user mode or in a system call. The thread pointer is a user address, so it is
// left out of a redacted file.
static __noinline void mark_user(struct linux_thread *r, struct task_struct *t)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(t);
	bool there = kernels(regs); // else its stack is gone since
	if (there && syscall_nr(t, regs) == -1)
		mark(r->present, THREAD_USER_MODE);
	else if (there && call_compat(t, regs))
		mark(r->present, THREAD_COMPAT_CALL);
	if (!cfg_redact) {
		r->fs_base = task_fs_base(t);
		mark(r->present, THREAD_HAS_FS_BASE);
	}
}

// One reservation holds the head and the stack: the unwinder runs first,
// because the head says how it went.
struct thread_record {
	struct thread_head head;
	struct kc_header stack;
	u64 frames[MAX_FRAMES + 1];
};

// What one thread may take: as many frames as are asked for, and a word of padding.
// cfg_stack_bytes is read-only data: the verifier knows its value, the compiler does not.
#define THREAD_ROOM (sizeof(struct thread_head) + sizeof(struct kc_header) + 8 + cfg_stack_bytes)

// ran_since says that the thread has given up its CPU since the head was filled: what was
// unwound in between belongs to no single moment. The scheduler counts the switch before
// it clears on_cpu, so a thread found off its CPU has the new count already.
static __always_inline bool ran_since(struct task_struct *t, struct linux_thread *was)
{
	return t->nvcsw + t->nivcsw != was->nvcsw + was->nivcsw;
}

// record_stack unwinds into the record and returns the size of the stack item in bytes,
// 0 if there is no stack. Frames are leaf first. A thread that runs on a CPU that was not
// stopped has none (EBUSY); a sample of that CPU may show it later. A zombie's stack is
// gone (EFAULT). The checks are made again after the unwinding: the thread may have
// started to run meanwhile, or have run and stopped.
static __noinline u32 record_stack(struct thread_record *rec, struct task_struct *t)
{
	struct linux_thread *lx = &rec->head.lx.v;
	long got = -EBUSY_;
	if (!runs_elsewhere(t))
		got = bpf_get_task_stack(t, rec->frames, cfg_stack_bytes, 0);
	if (runs_elsewhere(t) || ran_since(t, lx))
		got = -EBUSY_;
	if (got <= 0) {
		lx->kstack_err = -got;
		return 0;
	}
	u32 bytes = (u32)got;
	// The helper never returns more, but the verifier wants to see the bound.
	if (bytes > cfg_stack_bytes)
		bytes = cfg_stack_bytes;
	u32 n = bytes / 8, pad = bytes & 8;
	asm volatile("" : "+r"(n));
	if (n <= cfg_stack_bytes / 8)
		rec->frames[n] = 0; // the item's padding
	lx->kstack_depth = n;
	if (bytes == cfg_stack_bytes)
		mark(lx->present, THREAD_TRUNCATED);
	rec->stack.type = KC_ARRAY_PAD0 | pad;
	rec->stack.size = bytes + pad;
	rec->stack.flags = ((u64)KC_KERN_STACKLR64 << 32) | n;
	return sizeof(rec->stack) + bytes + pad;
}

// start_thread writes the item headers. kc_item_full clears only the padding of an item whose
// fields are all written; kc_item clears the fields too.
static __always_inline void start_thread(struct thread_head *h)
{
	kc_item_full(&h->snap, KC_THREAD_SNAPSHOT);
	kc_item_full(&h->times, KC_CPU_TIMES);
	kc_item_full(&h->lx, KC_LX_THREAD);
	kc_item(&h->sig, KC_LX_SIGNALS);
	h->name.h.type = KC_THREAD_NAME;
	h->name.h.size = 64;
	h->name.h.flags = 0x80;
	__builtin_memset(h->name.v + 16, 0, 48); // the rest is comm
}

// commit_thread commits the head and a stack item of so many bytes (0: none).
static __always_inline long commit_thread(struct sink *s, u32 stack)
{
	asm volatile("" : "+r"(stack)); // 6.12 forgets the bound across the unwinder
	if (stack > sizeof(struct thread_record) - sizeof(struct thread_head))
		stack = 0;
	return sink_commit(s, sizeof(struct thread_head) + stack);
}

// record_thread_head writes the head. The order matters: the task's cache lines are loaded
// together before the first read (fetch.h); fill_thread comes before record_stack, which
// compares its counts; record_stack comes before the snapshot, which says if it was cut.
static __noinline long record_thread_head(struct sink *s, struct task_struct *t, struct cpu_slot *of, u32 level)
{
	struct thread_record *rec = sink_reserve(s, THREAD_ROOM);
	if (!rec)
		return NO_ROOM;
	struct thread_head *h = &rec->head;
	fetch_thread(t);
	sink_fetch_stack(t);
	start_thread(h);
	__builtin_memcpy(h->name.v, t->comm, 16);
	fill_thread(&h->lx.v, t, level);
	mark_on_cpu(t, &h->lx.v, of);
	// The sums take the values that the record has, not those of a later read.
	sink_count(s, &h->lx.v);
	kept(s)->laps.head = lap(&kept(s)->laps);
	u32 stack = record_stack(rec, t);
	kept(s)->laps.stack = lap(&kept(s)->laps);
	fill_times(&h->times.v, &h->lx.v);
	fill_thread_snapshot(&h->snap.v, &h->lx.v, t);
	kc_begin(&h->begin, KC_THREAD, h->lx.v.tid);
	h->sig.v.pending = t->pending.signal.sig[0];
	h->sig.v.blocked = t->blocked.sig[0];
	struct signal_struct *sig = t->signal;
	if (sig)
		h->sig.v.shared_pending = sig->shared_pending.signal.sig[0];
	if (has_user_regs(t))
		mark_user(&h->lx.v, t);
	kept(s)->open = h->begin.h.flags;
	return commit_thread(s, stack);
}

// record_idle_head writes a CPU's idle thread. Its stack can be unwound since a worker has
// taken its CPU. It has no user side, no signals and no accounting worth a record. Every
// idle thread has pid 0, so its id is made from its CPU, above all real thread ids.
#define IDLE_ID (1ull << 32)

static __noinline long record_idle_head(struct sink *s, struct task_struct *t, struct cpu_slot *of, u32 cpu)
{
	struct thread_record *rec = sink_reserve(s, THREAD_ROOM);
	if (!rec)
		return NO_ROOM;
	struct thread_head *h = &rec->head;
	start_thread(h);
	fill_thread(&h->lx.v, t, 0);
	h->lx.v.tid = h->lx.v.tgid = 0;
	h->lx.v.cpu = cpu;
	h->lx.v.on_cpu = of->ran_known ? of->ran_tid == 0 : task_on_cpu(t);
	h->lx.v.present = (h->lx.v.present | THREAD_IS_IDLE) & ~THREAD_IS_SELF;
	__builtin_memcpy(h->name.v, t->comm, 16);
	u32 stack = record_stack(rec, t);
	fill_times(&h->times.v, &h->lx.v);
	fill_thread_snapshot(&h->snap.v, &h->lx.v, t);
	h->snap.v.ths_thread_id = IDLE_ID | cpu;
	h->snap.v.ths_state |= TH_IDLE;
	kc_begin(&h->begin, KC_THREAD, IDLE_ID | cpu);
	return commit_thread(s, stack);
}

#endif
