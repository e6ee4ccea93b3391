// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// How a task and a thread are recorded: static inline C over (sink, task).
// Reads only; every field comes from the task itself, nothing is followed that
// needs a lock. A value that cannot be read leaves its presence bit clear.
#ifndef STACKSHOT_RECORD_H
#define STACKSHOT_RECORD_H

#define PAGE_BYTES(n) ((u64)(n) << cfg_page_shift)

// Set by the loader before the programs are loaded; constant after.
const volatile u32 cfg_page_shift = 12;
const volatile u32 cfg_stack_bytes = 127 * 8; // kernel stack asked for, multiple of 8
const volatile u32 cfg_redact;                // leave out register and argument values
const volatile u32 cfg_self_tgid;             // the snapshotter, in its own pid namespace

// Written by the loader between captures, read here.
struct control {
	u64 boot_epoch_ns; // CLOCK_REALTIME minus CLOCK_BOOTTIME
	u32 armed;         // the switch hook notes what the workers displace
	u32 ns_level;      // depth of our pid namespace; written by the census
};

// nr_of: the number of a struct pid at one namespace depth; 0: not visible there.
static __always_inline u32 nr_of(struct pid *p, u32 level)
{
	struct upid u = {};
	if (!p || p->level < level)
		return 0;
	bpf_probe_read_kernel(&u.nr, sizeof(u.nr),
		(char *)p + bpf_core_field_offset(p->numbers) +
		level * bpf_core_type_size(struct upid) + bpf_core_field_offset(struct upid, nr));
	return u.nr;
}

static __always_inline u32 ns_level(void)
{
	struct task_struct *me = bpf_get_current_task_btf();
	struct pid *p = me->thread_pid;
	return p ? p->level : 0;
}

static __always_inline u32 tid_in(struct task_struct *t, u32 level)
{
	return level ? nr_of(t->thread_pid, level) : t->pid;
}

static __always_inline u32 tgid_in(struct task_struct *t, u32 level)
{
	return level ? nr_of(t->group_leader->thread_pid, level) : t->tgid;
}

static __always_inline u32 inum_of_pid_ns(struct pid *p)
{
	struct pid_namespace *ns = 0;
	if (!p)
		return 0;
	u32 level = p->level;
	bpf_probe_read_kernel(&ns, sizeof(ns),
		(char *)p + bpf_core_field_offset(p->numbers) +
		level * bpf_core_type_size(struct upid) + bpf_core_field_offset(struct upid, ns));
	return ns ? BPF_CORE_READ(ns, ns.inum) : 0;
}

// A task past its exit point: every one of its threads has begun to exit
// (do_exit lowers signal->live first; kernel/exit.c).
static __always_inline bool past_exit(struct task_struct *leader)
{
	struct signal_struct *sig = leader->signal;
	return !sig || (sig->live.counter == 0 && !(leader->flags & PF_IDLE_));
}

static __always_inline void fill_task(struct linux_task *r, struct task_struct *t, u32 level)
{
	struct signal_struct *sig = t->signal;
	const struct cred *cred = t->real_cred;
	struct task_struct *parent = t->real_parent;

	r->tgid = tgid_in(t, level);
	if (parent && cred) {
		r->ppid = tgid_in(parent, level);
		r->uid = cred->uid.val, r->gid = cred->gid.val;
		r->euid = cred->euid.val, r->egid = cred->egid.val;
		r->present |= TASK_HAS_IDS;
	}
	if (t->flags & PF_KTHREAD_)
		r->present |= TASK_IS_KERNEL;
	if (BPF_CORE_READ_BITFIELD(t, in_execve))
		r->present |= TASK_IN_EXEC;
	if (r->tgid == cfg_self_tgid)
		r->present |= TASK_IS_SELF;
	r->start_time = t->start_time;
	r->start_boottime = t->start_boottime;
	r->present |= TASK_HAS_TIMES | TASK_HAS_MONOTONIC;
	struct css_set *css = t->cgroups;
	if (css && bpf_core_field_exists(css->dfl_cgrp)) {
		r->cgroup_id = BPF_CORE_READ(css, dfl_cgrp, kn, id);
		r->present |= TASK_HAS_CGROUP;
	}
	r->exit_code = t->exit_code;
	if (!sig)
		return;
	r->pgid = nr_of(sig->pids[PIDTYPE_PGID], level);
	r->sid = nr_of(sig->pids[PIDTYPE_SID], level);
	r->nr_threads = sig->nr_threads;
	r->live = sig->live.counter;
	r->signal_flags = sig->flags;
	r->dead_utime = sig->utime;
	r->dead_stime = sig->stime;
	r->dead_min_flt = sig->min_flt;
	r->dead_maj_flt = sig->maj_flt;
	r->oom_score_adj = sig->oom_score_adj;
	r->present |= TASK_HAS_SIGNAL | TASK_HAS_FAULTS | TASK_HAS_OOM | TASK_HAS_THREAD_COUNT;
	if (bpf_core_field_exists(sig->core_state) && sig->core_state)
		r->present |= TASK_CORE_DUMPING;
	if (bpf_core_field_exists(sig->ioac.read_bytes)) {
		r->dead_read_bytes = sig->ioac.read_bytes;
		r->dead_write_bytes = sig->ioac.write_bytes;
		r->present |= TASK_HAS_GROUP_IO;
	}
}

static __always_inline void fill_memory(struct linux_task_memory *m, struct mm_struct *mm)
{
	u64 file = mm_counter(mm, RSS_FILE), anon = mm_counter(mm, RSS_ANON), shm = mm_counter(mm, RSS_SHMEM);
	u64 rss = file + anon + shm;
	m->rss_file = PAGE_BYTES(file);
	m->rss_anon = PAGE_BYTES(anon);
	m->rss_shmem = PAGE_BYTES(shm);
	m->swap = PAGE_BYTES(mm_counter(mm, RSS_SWAP));
	m->hiwater_rss = PAGE_BYTES(mm->hiwater_rss > rss ? mm->hiwater_rss : rss);
	m->hiwater_vm = PAGE_BYTES(mm->hiwater_vm > mm->total_vm ? mm->hiwater_vm : mm->total_vm);
	m->total_vm = PAGE_BYTES(mm->total_vm);
	m->locked_vm = PAGE_BYTES(mm->locked_vm);
	m->pinned_vm = PAGE_BYTES(mm->pinned_vm.counter);
	m->data_vm = PAGE_BYTES(mm->data_vm);
	m->exec_vm = PAGE_BYTES(mm->exec_vm);
	m->stack_vm = PAGE_BYTES(mm->stack_vm);
	m->pgtables = mm->pgtables_bytes.counter;
	m->map_count = mm->map_count;
}

static __always_inline void fill_namespaces(struct linux_task_ns *n, struct task_struct *t)
{
	struct nsproxy *p = t->nsproxy;
	const struct cred *cred = t->real_cred;
	n->pid = inum_of_pid_ns(t->thread_pid);
	if (cred)
		n->user = BPF_CORE_READ(cred, user_ns, ns.inum);
	if (!p) // given back on exit
		return;
	n->mnt = BPF_CORE_READ(p, mnt_ns, ns.inum);
	n->net = BPF_CORE_READ(p, net_ns, ns.inum);
	n->uts = BPF_CORE_READ(p, uts_ns, ns.inum);
	n->ipc = BPF_CORE_READ(p, ipc_ns, ns.inum);
	n->cgroup = BPF_CORE_READ(p, cgroup_ns, ns.inum);
	n->time = BPF_CORE_READ(p, time_ns, ns.inum);
}

static __always_inline void fill_exe(struct linux_task_exe *e, struct mm_struct *mm)
{
	struct dentry *d = BPF_CORE_READ(mm, exe_file, f_path.dentry);
	if (!d)
		return;
	e->ino = BPF_CORE_READ(d, d_inode, i_ino);
	e->dev = BPF_CORE_READ(d, d_inode, i_sb, s_dev);
	bpf_probe_read_kernel_str(e->name, sizeof(e->name), BPF_CORE_READ(d, d_name.name));
}

struct task_head {
	struct kc_container begin;
	KC_ITEM(struct task_snapshot, snap);
	KC_ITEM(struct linux_task, lx);
	KC_ITEM(struct linux_task_ns, ns);
};

struct exit_head {
	struct kc_container begin;
	KC_ITEM(struct transitioning_task_snapshot, snap);
	KC_ITEM(struct linux_task, lx);
	KC_ITEM(struct linux_task_ns, ns);
};

struct task_mm {
	KC_ITEM(struct linux_task_memory, mem);
	KC_ITEM(struct linux_task_exe, exe);
};

static __noinline long record_exit_head(struct sink *s, struct task_struct *t, u32 level)
{
	struct exit_head *h = sink_reserve(s, sizeof(*h));
	kc_item(&h->snap, KC_TRANS_TASK_SNAPSHOT);
	kc_item(&h->lx, KC_LX_TASK);
	kc_item(&h->ns, KC_LX_TASK_NS);
	fill_task(&h->lx.v, t, level);
	fill_namespaces(&h->ns.v, t);
	kc_begin(&h->begin, KC_TRANS_TASK, h->lx.v.tgid);
	h->snap.v.tts_unique_pid = h->lx.v.tgid;
	h->snap.v.tts_pid = h->lx.v.tgid;
	h->snap.v.tts_ss_flags = SS_USER64 | SS_KERNEL64;
	h->snap.v.tts_transition_type = 1; // terminated
	__builtin_memcpy(h->snap.v.tts_p_comm, t->comm, 16);
	return sink_commit(s, sizeof(*h));
}

static __always_inline long record_task_head(struct sink *s, struct task_struct *t, struct control *c, u32 level)
{
	struct task_head *h = sink_reserve(s, sizeof(*h));
	struct mm_struct *mm = t->mm;
	kc_item(&h->snap, KC_TASK_SNAPSHOT);
	kc_item(&h->lx, KC_LX_TASK);
	kc_item(&h->ns, KC_LX_TASK_NS);
	fill_task(&h->lx.v, t, level);
	fill_namespaces(&h->ns.v, t);
	kc_begin(&h->begin, KC_TASK, h->lx.v.tgid);

	struct task_snapshot *ts = &h->snap.v;
	ts->ts_unique_pid = h->lx.v.tgid;
	ts->ts_pid = h->lx.v.tgid;
	ts->ts_ss_flags = SS_KERNEL64 | (mm ? SS_USER64 : 0);
	ts->ts_user_time_in_terminated_threads = h->lx.v.dead_utime;
	ts->ts_system_time_in_terminated_threads = h->lx.v.dead_stime;
	ts->ts_p_start_sec = (c->boot_epoch_ns + t->start_boottime) / 1000000000;
	ts->ts_faults = h->lx.v.dead_min_flt + h->lx.v.dead_maj_flt;
	ts->ts_pageins = h->lx.v.dead_maj_flt;
	__builtin_memcpy(ts->ts_p_comm, t->comm, 16);
	if (mm) {
		u64 rss = mm_counter(mm, RSS_FILE) + mm_counter(mm, RSS_ANON) + mm_counter(mm, RSS_SHMEM);
		ts->ts_task_size = PAGE_BYTES(rss);
		ts->ts_max_resident_size = PAGE_BYTES(mm->hiwater_rss > rss ? mm->hiwater_rss : rss);
	}
	return sink_commit(s, sizeof(*h));
}

static __noinline long record_task_mm(struct sink *s, struct task_struct *t)
{
	struct mm_struct *mm = t->mm;
	if (!mm)
		return 0;
	struct task_mm *m = sink_reserve(s, sizeof(*m));
	kc_item(&m->mem, KC_LX_TASK_MEMORY);
	kc_item(&m->exe, KC_LX_TASK_EXE);
	fill_memory(&m->mem.v, mm);
	fill_exe(&m->exe.v, mm);
	return sink_commit(s, sizeof(*m));
}

struct thread_head {
	struct kc_container begin;
	KC_ITEM(struct thread_snapshot, snap);
	struct { struct kc_header h; char v[64]; } name;
	KC_ITEM(struct cpu_times, times);
	KC_ITEM(struct linux_thread, lx);
	KC_ITEM(struct linux_signals, sig);
};

// What ths_state says, from __state and exit_state (include/linux/sched.h:
// TASK_INTERRUPTIBLE 1, UNINTERRUPTIBLE 2, STOPPED 4, TRACED 8, PARKED 0x40,
// NOLOAD 0x400; EXIT_DEAD 0x10, EXIT_ZOMBIE 0x20).
static __always_inline u32 xnu_state(u32 state, u32 exit_state)
{
	u32 s = 0;
	if (exit_state)
		return TH_TERMINATE;
	if (!state)
		return TH_RUN;
	s = TH_WAIT;
	if (state & (0x4 | 0x8))
		s |= TH_SUSP;
	if ((state & 0x2) && !(state & 0x400))
		s |= TH_UNINT;
	return s;
}

static __always_inline void fill_thread(struct linux_thread *r, struct task_struct *t, u32 level)
{
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
	r->present |= THREAD_HAS_TIMES | THREAD_HAS_SWITCHES | THREAD_HAS_FAULTS | THREAD_HAS_PRIO |
		THREAD_HAS_START | THREAD_HAS_STACK | THREAD_HAS_EXIT_CODE | THREAD_HAS_ONCPU | THREAD_HAS_MONOTONIC;
	if (bpf_core_field_exists(t->sched_info.last_arrival)) { // CONFIG_SCHED_INFO
		r->run_delay = t->sched_info.run_delay;
		r->pcount = t->sched_info.pcount;
		r->last_arrival = t->sched_info.last_arrival;
		r->last_queued = t->sched_info.last_queued;
		r->present |= THREAD_HAS_SCHED_INFO | THREAD_HAS_RUNTIME;
		if (!r->pcount && !r->last_arrival)
			r->present |= THREAD_NEVER_RAN;
	}
	if (r->tgid == cfg_self_tgid)
		r->present |= THREAD_IS_SELF;
}

// fill_times: user and system as /proc shows them, the tick-based shares
// applied to the exact run time (cputime_adjust, kernel/sched/cputime.c). The
// quotient is taken in 2^-20 steps so that it fits 64 bits for any run time.
static __always_inline void fill_times(struct cpu_times *v, struct linux_thread *r)
{
	u64 rt = r->sum_exec_runtime, ticks = r->utime + r->stime, sys = 0;
	if (r->stime && ticks) {
		u64 st = r->stime;
		if (ticks >> 43) { // beyond 2.4 hours of ticks, ms are enough
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

static __always_inline void fill_thread_snapshot(struct thread_snapshot *v, struct linux_thread *r, struct task_struct *t)
{
	v->ths_thread_id = r->tid;
	v->ths_user_time = r->utime;
	v->ths_sys_time = r->stime;
	v->ths_ss_flags = SS_KERNEL64 | (t->mm ? SS_USER64 : 0) | (r->tid == r->tgid ? THS_MAIN : 0) |
		(r->on_cpu ? THS_ONCORE : 0) | (r->present & THREAD_TRUNCATED ? THS_TRUNCKERN : 0);
	v->ths_last_run_time = r->last_arrival;
	v->ths_last_made_runnable_time = r->last_queued;
	v->ths_state = xnu_state(r->state, r->exit_state);
	// XNU counts upwards, Linux downwards: 139 is Linux's last priority.
	v->ths_base_priority = 139 - r->static_prio;
	v->ths_sched_priority = 139 - r->prio;
}

// What one CPU was doing when the stop took it, and our worker there. One per
// possible CPU. worker_tid: written by the loader before the stop; threads,
// begun, done, open_id: by the worker's own programs (begun and done cleared
// by the worker between two tasks); ran_* and clocks: by the switch hook on
// that CPU while armed; nr_running: by record_idle.
struct cpu_slot {
	u32 worker_tid;
	u32 begun;     // a container begin was written and its end was not
	u32 done;      // the task's end was written
	u32 unused;
	u32 threads;   // threads recorded
	u32 nr_running;
	u32 ran_tid, ran_tgid;
	u32 ran_known;
	u32 reserved;
	u64 stop_ns;  // ktime of the switch to the worker
	u64 rq_clock; // runqueue clock at that moment; 0: not known
	u64 open_id;  // id of the open container
	u64 pad[8];   // to 128 bytes: two CPUs never share a line pair
};

static __always_inline u32 was_on_cpu(struct task_struct *t, struct linux_thread *r, struct cpu_slot *of)
{
	if (of && of->ran_known && r->tid)
		return (of->ran_tid == r->tid) || (task_on_cpu(t) && (r->present & THREAD_IS_SELF));
	return task_on_cpu(t) != 0;
}

// Threads that never come from or go to user mode have no user registers;
// neither has one whose stack may already be gone. One on its way out, whose
// memory is gone, still has them.
static __always_inline bool has_user_regs(struct task_struct *t)
{
	return !(t->flags & NO_USER_SIDE) && !t->exit_state;
}

// mark_user adds what only a thread with user space has: its thread pointer,
// and whether it was in user mode rather than in a system call.
static __always_inline void mark_user(struct linux_thread *r, struct task_struct *t)
{
	struct linux_syscall call = {};
	read_syscall(t, (struct pt_regs *)bpf_task_pt_regs(t), &call);
	if (call.nr == -1)
		r->present |= THREAD_USER_MODE;
	if (!cfg_redact) {
		r->fs_base = task_fs_base(t);
		r->present |= THREAD_HAS_FS_BASE;
	}
}

// One reservation holds the head and the stack: the unwinder runs first,
// because the head says how it went.
struct thread_record {
	struct thread_head head;
	struct kc_header stack;
	u64 frames[MAX_FRAMES + 1];
};

// record_stack unwinds into the record and gives the bytes of the stack item,
// 0 where there is no stack. Frames are leaf first. The kernel unwinds no task
// that runs on another CPU (0 frames), and a zombie's stack is gone (-EFAULT).
static __always_inline u32 record_stack(struct thread_record *rec, struct task_struct *t)
{
	struct linux_thread *lx = &rec->head.lx.v;
	long got = bpf_get_task_stack(t, rec->frames, cfg_stack_bytes, 0);
	if (got <= 0) {
		lx->kstack_err = -got;
		return 0;
	}
	u32 bytes = (u32)got;
	if (bytes > MAX_FRAMES * 8)
		bytes = MAX_FRAMES * 8;
	u32 n = bytes / 8, pad = bytes & 8;
	asm volatile("" : "+r"(n));
	if (n && n <= MAX_FRAMES)
		rec->frames[n] = 0; // the item's padding
	lx->kstack_depth = n;
	if (bytes == cfg_stack_bytes)
		lx->present |= THREAD_TRUNCATED;
	rec->stack.type = KC_ARRAY_PAD0 | pad;
	rec->stack.size = bytes + pad;
	rec->stack.flags = ((u64)KC_KERN_STACKLR64 << 32) | n;
	return sizeof(rec->stack) + bytes + pad;
}

static __always_inline void start_thread(struct thread_head *h)
{
	kc_item(&h->snap, KC_THREAD_SNAPSHOT);
	kc_item(&h->times, KC_CPU_TIMES);
	kc_item(&h->lx, KC_LX_THREAD);
	kc_item(&h->sig, KC_LX_SIGNALS);
	h->name.h.type = KC_THREAD_NAME;
	h->name.h.size = 64;
	h->name.h.flags = 0x80;
	__builtin_memset(h->name.v, 0, 64);
}

static __always_inline long commit_thread(struct sink *s, u32 stack)
{
	asm volatile("" : "+r"(stack)); // 6.12 forgets the bound across the unwinder
	if (stack > sizeof(struct thread_record) - sizeof(struct thread_head))
		stack = 0;
	return sink_commit(s, sizeof(struct thread_head) + stack);
}

static __noinline long record_thread_head(struct sink *s, struct task_struct *t, struct cpu_slot *of, u32 level)
{
	struct thread_record *rec = sink_reserve(s, sizeof(*rec));
	struct thread_head *h = &rec->head;
	start_thread(h);
	__builtin_memcpy(h->name.v, t->comm, 16);
	fill_thread(&h->lx.v, t, level);
	h->lx.v.on_cpu = was_on_cpu(t, &h->lx.v, of);
	u32 stack = record_stack(rec, t);
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
	s->open = h->begin.h.flags;
	return commit_thread(s, stack);
}

// The idle thread's stack is whole once a worker has its CPU. No user side, no
// signals, no accounting worth a record.
#define IDLE_ID (1ull << 32)

static __noinline long record_idle_head(struct sink *s, struct task_struct *t, struct cpu_slot *of, u32 cpu)
{
	struct thread_record *rec = sink_reserve(s, sizeof(*rec));
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

struct io_item { KC_ITEM(struct linux_thread_io, io); };
struct delay_item { KC_ITEM(struct linux_delays, delays); };
struct syscall_item { KC_ITEM(struct linux_syscall, call); };

static __always_inline long record_io(struct sink *s, struct task_struct *t)
{
	if (!bpf_core_field_exists(t->ioac.syscr)) // CONFIG_TASK_XACCT, TASK_IO_ACCOUNTING
		return 0;
	struct io_item *i = sink_reserve(s, sizeof(*i));
	kc_item(&i->io, KC_LX_THREAD_IO);
	struct linux_thread_io *v = &i->io.v;
	v->rchar = t->ioac.rchar, v->wchar = t->ioac.wchar;
	v->syscr = t->ioac.syscr, v->syscw = t->ioac.syscw;
	if (bpf_core_field_exists(t->ioac.read_bytes)) {
		v->read_bytes = t->ioac.read_bytes, v->write_bytes = t->ioac.write_bytes;
		v->cancelled_write_bytes = t->ioac.cancelled_write_bytes;
	}
	return sink_commit(s, sizeof(*i));
}

static __noinline long record_delays(struct sink *s, struct task_struct *t)
{
	if (!bpf_core_field_exists(t->delays) || !t->delays)
		return 0;
	struct task_delay_info *d = t->delays;
	struct delay_item *i = sink_reserve(s, sizeof(*i));
	kc_item(&i->delays, KC_LX_DELAYS);
	struct linux_delays *v = &i->delays.v;
	v->blkio_ns = d->blkio_delay, v->blkio = d->blkio_count;
	v->swapin_ns = d->swapin_delay, v->swapin = d->swapin_count;
	v->freepages_ns = d->freepages_delay, v->freepages = d->freepages_count;
	v->thrashing_ns = d->thrashing_delay, v->thrashing = d->thrashing_count;
	v->compact_ns = d->compact_delay, v->compact = d->compact_count;
	if (bpf_core_field_exists(d->wpcopy_delay)) // "delayacct: track delays from write-protect copy", in 6.0
		v->wpcopy_ns = d->wpcopy_delay, v->wpcopy = d->wpcopy_count;
	return sink_commit(s, sizeof(*i));
}

static __always_inline long record_syscall(struct sink *s, struct task_struct *t)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(t);
	struct syscall_item *i = sink_reserve(s, sizeof(*i));
	kc_item(&i->call, KC_LX_SYSCALL);
	read_syscall(t, regs, &i->call.v);
	if (cfg_redact) {
		s64 nr = i->call.v.nr;
		__builtin_memset(&i->call.v, 0, sizeof(i->call.v));
		i->call.v.nr = nr;
	}
	return sink_commit(s, sizeof(*i));
}

struct regs_item { struct kc_header h; u64 v[USER_REGS + (USER_REGS & 1)]; };

static __always_inline long record_registers(struct sink *s, struct task_struct *t)
{
	if (cfg_redact)
		return 0;
	struct regs_item *i = sink_reserve(s, sizeof(*i));
	i->h.type = KC_ARRAY_PAD0 | (USER_REGS & 1) * 8;
	i->h.size = sizeof(i->v);
	i->h.flags = ((u64)KC_LX_REGISTERS << 32) | USER_REGS;
	i->v[sizeof(i->v) / 8 - 1] = 0; // padding, where there is any
	if (bpf_probe_read_kernel(i->v, USER_REGS * 8, (void *)bpf_task_pt_regs(t)))
		return 0;
	clean_registers(i->v);
	return sink_commit(s, sizeof(*i));
}

#define MAX_NS 8 // deeper pid namespaces noted; the kernel allows 32

struct ns_item { struct kc_header h; struct linux_thread_ns v[MAX_NS]; };

static __noinline long record_pid_ns(struct sink *s, struct task_struct *t, u32 level)
{
	struct pid *p = t->thread_pid;
	if (!p || p->level <= level)
		return 0;
	struct ns_item *i = sink_reserve(s, sizeof(*i));
	u32 n = p->level - level;
	if (n > MAX_NS)
		n = MAX_NS;
	__builtin_memset(i->v, 0, sizeof(i->v));
	for (u32 k = 0; k < MAX_NS; k++) {
		struct pid_namespace *ns = 0;
		u32 nr = 0;
		if (k >= n)
			break;
		char *up = (char *)p + bpf_core_field_offset(p->numbers) +
			(level + 1 + k) * bpf_core_type_size(struct upid);
		bpf_probe_read_kernel(&nr, sizeof(nr), up + bpf_core_field_offset(struct upid, nr));
		bpf_probe_read_kernel(&ns, sizeof(ns), up + bpf_core_field_offset(struct upid, ns));
		i->v[k].tid = nr;
		i->v[k].inode = ns ? BPF_CORE_READ(ns, ns.inum) : 0;
	}
	u32 pad = (n & 1) * 8;
	i->h.type = KC_ARRAY_PAD0 | pad;
	i->h.size = n * sizeof(i->v[0]) + pad;
	i->h.flags = ((u64)KC_LX_THREAD_NS << 32) | n;
	return sink_commit(s, sizeof(i->h) + ((n * sizeof(i->v[0]) + pad) & 0x7f));
}

#endif
