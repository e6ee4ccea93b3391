// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// How a task is recorded: static inline C over (sink, task). Reads only; every
// field comes from the task itself, nothing is followed that needs a lock. A
// value that cannot be read leaves its presence bit clear.
#ifndef STACKSHOT_RECORD_TASK_H
#define STACKSHOT_RECORD_TASK_H

// A task past its exit point: every one of its threads has begun to exit
// (do_exit lowers signal->live first; kernel/exit.c).
static __always_inline bool past_exit(struct task_struct *leader)
{
	struct signal_struct *sig = leader->signal;
	return !sig || (sig->live.counter == 0 && !(leader->flags & PF_IDLE_));
}

static __noinline void fill_task(struct linux_task *r, struct task_struct *t, u32 level)
{
	struct signal_struct *sig = t->signal;
	const struct cred *cred = t->real_cred;
	struct task_struct *parent = t->real_parent;

	r->tgid = tgid_in(t, level);
	if (parent && cred) {
		r->ppid = tgid_in(parent, level);
		r->uid = cred->uid.val, r->gid = cred->gid.val;
		r->euid = cred->euid.val, r->egid = cred->egid.val;
		mark(r->present, TASK_HAS_IDS);
	}
	if (t->flags & PF_KTHREAD_)
		mark(r->present, TASK_IS_KERNEL);
	if (BPF_CORE_READ_BITFIELD(t, in_execve))
		mark(r->present, TASK_IN_EXEC);
	if (r->tgid == cfg_self_tgid)
		mark(r->present, TASK_IS_SELF);
	r->start_time = t->start_time;
	r->start_boottime = t->start_boottime;
	mark(r->present, TASK_HAS_TIMES | TASK_HAS_MONOTONIC);
	struct css_set *css = t->cgroups;
	if (css && bpf_core_field_exists(css->dfl_cgrp)) {
		r->cgroup_id = css->dfl_cgrp->kn->id;
		mark(r->present, TASK_HAS_CGROUP);
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
	mark(r->present, TASK_HAS_SIGNAL | TASK_HAS_FAULTS | TASK_HAS_OOM | TASK_HAS_THREAD_COUNT);
	if (bpf_core_field_exists(sig->core_state) && sig->core_state)
		mark(r->present, TASK_CORE_DUMPING);
	if (bpf_core_field_exists(sig->ioac.read_bytes)) {
		r->dead_read_bytes = sig->ioac.read_bytes;
		r->dead_write_bytes = sig->ioac.write_bytes;
		mark(r->present, TASK_HAS_GROUP_IO);
	}
}

static __noinline void fill_memory(struct linux_task_memory *m, struct mm_struct *mm)
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
	if (cfg_redact)
		return;
	m->start_stack = mm->start_stack;
	m->end_code = mm->end_code;
	m->end_data = mm->end_data;
}

// inum_of is a namespace's number. Who exits gives its nsproxy back at once, and the
// namespaces of the first tasks lie in the kernel's image: so by helper, which reads
// the kernel's half alone and never sleeps.
#define inum_of(p)                                          \
	({                                                      \
		__auto_type ns_ = (p);                              \
		u32 inum_ = 0;                                      \
		bpf_core_read(&inum_, sizeof(inum_), &ns_->ns.inum); \
		inum_;                                              \
	})

static __noinline void fill_namespaces(struct linux_task_ns *n, struct task_struct *t)
{
	struct nsproxy *p = t->nsproxy;
	const struct cred *cred = t->real_cred;
	n->pid = inum_of_pid_ns(t->thread_pid);
	if (cred)
		n->user = cred->user_ns->ns.inum;
	if (!p) // given back on exit
		return;
	n->mnt = inum_of(p->mnt_ns);
	n->net = inum_of(p->net_ns);
	n->uts = inum_of(p->uts_ns);
	n->ipc = inum_of(p->ipc_ns);
	n->cgroup = inum_of(p->cgroup_ns);
	n->time = inum_of(p->time_ns);
}

static __always_inline void put_exe_name(struct maple *m, struct linux_task_exe *e, u64 name)
{
	u64 from = ordinary(&m->ram, name, sizeof(e->name));
	if (!cfg_dm_base && kernel_half(name))
		from = name;
	if (from)
		bpf_probe_read_kernel_str(e->name, sizeof(e->name), (void *)from);
	else
		refused(m);
}

static __noinline void fill_exe(struct linux_task_exe *e, struct mm_struct *mm)
{
	struct maple *m = the_maple();
	if (!m)
		return;
	m->dentry = (u64)mm->exe_file; // through memory, where the verifier forgets what it points to
	u64 f = peek(m->dentry);
	if (!f)
		return;
	m->refused = 0;
	u64 d = follow_field(m, file, f, f_path.dentry);
	u64 inode = d ? follow_field(m, dentry, d, d_inode) : 0;
	if (inode) {
		e->ino = follow_field(m, inode, inode, i_ino);
		e->dev = follow_field(m, super_block, follow_field(m, inode, inode, i_sb), s_dev);
		put_exe_name(m, e, follow_field(m, dentry, d, d_name.name));
	}
	e->refused = m->refused;
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
	if (!h)
		return NO_ROOM;
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

static __noinline long record_task_head(struct sink *s, struct task_struct *t, struct control *c, u32 level)
{
	struct task_head *h = sink_reserve(s, sizeof(*h));
	if (!h)
		return NO_ROOM;
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
	if (!m)
		return NO_ROOM;
	kc_item(&m->mem, KC_LX_TASK_MEMORY);
	kc_item(&m->exe, KC_LX_TASK_EXE);
	fill_memory(&m->mem.v, mm);
	fill_exe(&m->exe.v, mm);
	return sink_commit(s, sizeof(*m));
}

// What may stand before a task's threads.
#define TASK_ROOM (sizeof(struct task_head) + sizeof(struct task_mm) + sizeof(struct kc_header))

// open_task begins a task's container and writes what stands before its threads.
static __always_inline long open_task(struct sink *s, struct task_struct *t, struct control *c, u32 level)
{
	if (!sink_room(s, TASK_ROOM))
		return NO_ROOM;
	bool gone = past_exit(t);
	want_maps(gone ? 0 : t->mm);
	if (gone)
		return record_exit_head(s, t, level);
	long err = record_task_head(s, t, c, level);
	return err ? err : record_task_mm(s, t);
}

static __always_inline long close_container(struct sink *s, u64 id)
{
	struct kc_header *h = sink_reserve(s, sizeof(*h));
	if (!h)
		return NO_ROOM;
	kc_end(h, id);
	return sink_commit(s, sizeof(*h));
}

#endif
