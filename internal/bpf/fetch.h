// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// Most of what a thread costs is waiting for memory: each of the lines that hold
// it is in no cache. Asked for together they come together; one by one, each
// between calls and behind the loads that lead to it, they do not. So what is
// about to be read is loaded first, a word of each line, and dropped.
#ifndef STACKSHOT_FETCH_H
#define STACKSHOT_FETCH_H

#define fetch(x)                             \
	do {                                     \
		u64 word_ = (u64)(x);                \
		asm volatile("" : "+r"(word_));      \
	} while (0)

// fetch_thread: the task itself, in the order of its fields.
static __always_inline void fetch_thread(struct task_struct *t)
{
	fetch(t->flags);
	fetch(t->prio);
	fetch(t->se.exec_start);
	fetch(t->policy);
	if (bpf_core_field_exists(t->sched_info.last_queued)) // CONFIG_SCHED_INFO
		fetch(t->sched_info.last_queued);
	fetch(t->mm);
	fetch(t->exit_state);
	fetch(t->pid);
	fetch(t->group_leader);
	fetch(t->thread_pid);
	fetch(t->stime);
	fetch(t->min_flt);
	fetch(t->comm[0]);
	fetch(t->signal);
	fetch(t->pending.signal.sig[0]);
	if (bpf_core_field_exists(t->ioac.syscr)) // CONFIG_TASK_XACCT
		fetch(t->ioac.syscr);
	if (bpf_core_field_exists(t->ioac.read_bytes)) // CONFIG_TASK_IO_ACCOUNTING
		fetch(t->ioac.read_bytes);
	if (bpf_core_field_exists(t->delays)) // CONFIG_TASK_DELAY_ACCT
		fetch(t->delays);
	fetch(task_fs_base(t));
	if (cfg_wait) {
		fetch(t->vfork_done);
		fetch(t->jobctl);
	}
	struct signal_struct *sig = t->signal;
	if (sig)
		fetch(sig->shared_pending.signal.sig[0]);
}

#endif
