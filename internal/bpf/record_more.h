// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// A thread's further items, each present only where the kernel or the thread
// has what it is about. The rules are those of record_task.h.
#ifndef STACKSHOT_RECORD_MORE_H
#define STACKSHOT_RECORD_MORE_H

struct io_item { KC_ITEM(struct linux_thread_io, io); };
struct delay_item { KC_ITEM(struct linux_delays, delays); };
struct syscall_item { KC_ITEM(struct linux_syscall, call); };

static __noinline long record_io(struct sink *s, struct task_struct *t)
{
	if (!bpf_core_field_exists(t->ioac.syscr)) // CONFIG_TASK_XACCT, TASK_IO_ACCOUNTING
		return 0;
	struct io_item *i = sink_reserve(s, sizeof(*i));
	if (!i)
		return NO_ROOM;
	kc_item_full(&i->io, KC_LX_THREAD_IO);
	struct linux_thread_io *v = &i->io.v;
	v->rchar = t->ioac.rchar, v->wchar = t->ioac.wchar;
	v->syscr = t->ioac.syscr, v->syscw = t->ioac.syscw;
	if (bpf_core_field_exists(t->ioac.read_bytes)) {
		v->read_bytes = t->ioac.read_bytes, v->write_bytes = t->ioac.write_bytes;
		v->cancelled_write_bytes = t->ioac.cancelled_write_bytes;
	} else {
		v->read_bytes = v->write_bytes = v->cancelled_write_bytes = 0;
	}
	return sink_commit(s, sizeof(*i));
}

static __noinline long record_delays(struct sink *s, struct task_struct *t)
{
	if (!bpf_core_field_exists(t->delays) || !t->delays)
		return 0;
	struct task_delay_info *d = t->delays;
	struct delay_item *i = sink_reserve(s, sizeof(*i));
	if (!i)
		return NO_ROOM;
	kc_item_full(&i->delays, KC_LX_DELAYS);
	struct linux_delays *v = &i->delays.v;
	v->blkio_ns = d->blkio_delay, v->blkio = d->blkio_count;
	v->swapin_ns = d->swapin_delay, v->swapin = d->swapin_count;
	v->freepages_ns = d->freepages_delay, v->freepages = d->freepages_count;
	v->thrashing_ns = d->thrashing_delay, v->thrashing = d->thrashing_count;
	v->compact_ns = d->compact_delay, v->compact = d->compact_count;
	if (bpf_core_field_exists(d->wpcopy_delay)) // "delayacct: track delays from write-protect copy", in 6.0
		v->wpcopy_ns = d->wpcopy_delay, v->wpcopy = d->wpcopy_count;
	else
		v->wpcopy_ns = v->wpcopy = 0;
	return sink_commit(s, sizeof(*i));
}

struct regs_item { struct kc_header h; u64 v[USER_REGS + (USER_REGS & 1)]; };
struct user_items { struct syscall_item call; struct regs_item regs; };

static __noinline long record_syscall_nr(struct sink *s, struct task_struct *t, struct pt_regs *regs)
{
	struct syscall_item *i = sink_reserve(s, sizeof(*i));
	if (!i)
		return NO_ROOM;
	kc_item(&i->call, KC_LX_SYSCALL);
	i->call.v.nr = syscall_nr(t, regs);
	return sink_commit(s, sizeof(*i));
}

// record_user copies the saved registers once; the call and its arguments are
// taken from the copy.
static __noinline long record_user(struct sink *s, struct task_struct *t)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(t);
	if (!kernels(regs)) // its stack is gone since
		return 0;
	if (cfg_redact)
		return record_syscall_nr(s, t, regs);
	struct user_items *i = sink_reserve(s, sizeof(*i));
	if (!i)
		return NO_ROOM;
	u64 *v = i->regs.v;
	v[sizeof(i->regs.v) / 8 - 1] = 0; // padding, where there is any
	long err = bpf_probe_read_kernel(v, USER_REGS * 8, regs);
	kc_item_full(&i->call.call, KC_LX_SYSCALL);
	read_syscall(t, regs, v, &i->call.call.v);
	clean_registers(v);
	if (!err)
		note_registers(v, i->call.call.v.nr);
	i->regs.h.type = KC_ARRAY_PAD0 | (USER_REGS & 1) * 8;
	i->regs.h.size = sizeof(i->regs.v);
	i->regs.h.flags = ((u64)KC_LX_REGISTERS << 32) | USER_REGS;
	return sink_commit(s, err ? sizeof(i->call) : sizeof(*i));
}

#define MAX_NS 8 // deeper pid namespaces noted; the kernel allows 32

struct ns_item { struct kc_header h; struct linux_thread_ns v[MAX_NS]; };

// The threads of a task are all in one pid namespace (CLONE_THREAD refuses
// another, kernel/fork.c), so the sink keeps that there is no deeper one.
static __noinline long record_pid_ns(struct sink *s, struct task_struct *t, u32 level)
{
	if (kept(s)->shallow)
		return 0;
	struct pid *p = t->thread_pid;
	if (!p)
		return 0;
	if (p->level <= level) {
		kept(s)->shallow = 1;
		return 0;
	}
	struct ns_item *i = sink_reserve(s, sizeof(*i));
	if (!i)
		return NO_ROOM;
	u32 n = p->level - level;
	if (n > MAX_NS)
		n = MAX_NS;
	// In memory, so that the verifier forgets which: else what follows the loop
	// is walked once more for each way out of it.
	volatile u64 *kept_n = &i->h.flags;
	*kept_n = n;
	__builtin_memset(i->v, 0, sizeof(i->v));
	for (u32 k = 0; k < MAX_NS; k++) {
		struct pid_namespace *ns = 0;
		u32 nr = 0;
		if (k >= *kept_n)
			break;
		char *up = upid_at(p, level + 1 + k);
		bpf_probe_read_kernel(&nr, sizeof(nr), up + bpf_core_field_offset(struct upid, nr));
		bpf_probe_read_kernel(&ns, sizeof(ns), up + bpf_core_field_offset(struct upid, ns));
		i->v[k].tid = nr;
		i->v[k].inode = ns ? BPF_CORE_READ(ns, ns.inum) : 0;
	}
	n = *kept_n;
	u32 pad = (n & 1) * 8;
	i->h.type = KC_ARRAY_PAD0 | pad;
	i->h.size = n * sizeof(i->v[0]) + pad;
	i->h.flags = ((u64)KC_LX_THREAD_NS << 32) | n;
	return sink_commit(s, sizeof(i->h) + ((n * sizeof(i->v[0]) + pad) & 0x7f));
}

// record_latency is XNU's record of one thread, its last item.
static __noinline long record_latency(struct sink *s)
{
	u64 misc = lap(&kept(s)->laps);
	struct latency_item *i = sink_reserve(s, sizeof(*i));
	if (!i)
		return NO_ROOM;
	kc_item(&i->latency, KC_LATENCY_THREAD);
	struct latency_thread *v = &i->latency.v;
	v->thread_id = kept(s)->open;
	v->cur_thsnap1_latency = kept(s)->laps.head, v->kernel_stack_latency = kept(s)->laps.stack;
	v->cur_thsnap2_latency = kept(s)->laps.rest, v->misc_latency = misc;
	sink_unwound(s, kept(s)->laps.stack);
	return sink_commit(s, sizeof(*i));
}

// What a thread may take, and the end of its task after it; less its user stack,
// which asks for room of its own.
#define THREAD_MOST                                                                             \
	(THREAD_ROOM + sizeof(struct io_item) + sizeof(struct delay_item) + sizeof(struct ns_item) + \
		sizeof(struct user_items) + WAIT_MOST + THREAD_END)

// record_thread writes one thread's container, whole.
static __always_inline long record_thread(struct sink *s, struct task_struct *t, struct cpu_slot *of, u32 level)
{
	lap(&kept(s)->laps);
	if (!sink_room(s, THREAD_MOST) || record_thread_head(s, t, of, level))
		return NO_ROOM;
	kept(s)->laps.rest = lap(&kept(s)->laps);
	if (record_io(s, t) || record_delays(s, t) || record_pid_ns(s, t, level))
		return NO_ROOM;
	if (has_user_regs(t) && record_user(s, t))
		return NO_ROOM;
	if (record_wait(s, t, level))
		return NO_ROOM;
	if (has_user_regs(t) && record_user_stack(s, t))
		return NO_ROOM;
	if (cfg_latency >= 2 && record_latency(s))
		return NO_ROOM;
	return close_container(s, kept(s)->open);
}

#endif
