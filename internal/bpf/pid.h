// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// Numbers of tasks as one pid namespace counts them.
#ifndef STACKSHOT_PID_H
#define STACKSHOT_PID_H

// upid_at: where a struct pid keeps its number of one namespace depth. 6.1
// knows no bound of a product and moves no pointer by such; namespaces nest at
// most 32 deep (MAX_PID_NS_LEVEL, include/linux/pid_namespace.h), so the mask
// changes nothing.
static __always_inline char *upid_at(struct pid *p, u32 level)
{
	u32 at = level * bpf_core_type_size(struct upid);
	return (char *)p + bpf_core_field_offset(p->numbers) + (at & 0xfff);
}

// nr_of: the number of a struct pid at one namespace depth; 0: not visible there.
static __always_inline u32 nr_of(struct pid *p, u32 level)
{
	struct upid u = {};
	if (!p || p->level < level)
		return 0;
	if (!level) { // a plain load, where a helper would be called
		u32 nr = p->numbers[0].nr;
		asm volatile("" : "+r"(nr)); // not merged with the load below: one instruction, one kind of pointer
		return nr;
	}
	bpf_probe_read_kernel(&u.nr, sizeof(u.nr), upid_at(p, level) + bpf_core_field_offset(struct upid, nr));
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
	if (!p->level) {
		u32 inum = p->numbers[0].ns->ns.inum;
		asm volatile("" : "+r"(inum));
		return inum;
	}
	bpf_probe_read_kernel(&ns, sizeof(ns), upid_at(p, p->level) + bpf_core_field_offset(struct upid, ns));
	return ns ? BPF_CORE_READ(ns, ns.inum) : 0;
}

#endif
