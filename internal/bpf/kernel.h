// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// The kernel's types, as far as we read them. CO-RE moves every access to the
// running kernel's offsets, so only names and types matter here, not order or
// size. What differs between releases is in compat.h, never here.
#ifndef STACKSHOT_KERNEL_H
#define STACKSHOT_KERNEL_H

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef signed char s8;
typedef short s16;
typedef int s32;
typedef long long s64;
// What bpf_helper_defs.h expects of a vmlinux.h.
typedef u16 __u16;
typedef u32 __u32;
typedef u64 __u64;
typedef s32 __s32;
typedef s64 __s64;
typedef u8 __u8;
typedef u16 __be16;
typedef u32 __be32;
typedef u32 __wsum;
typedef _Bool bool;

enum { BPF_MAP_TYPE_ARRAY = 2, BPF_MAP_TYPE_PERCPU_ARRAY = 6, BPF_MAP_TYPE_ARRAY_OF_MAPS = 12, BPF_MAP_TYPE_RINGBUF = 27 };
enum { BPF_RB_FORCE_WAKEUP = 2 };
enum { BPF_F_MMAPABLE = 1u << 10 };
enum { PIDTYPE_PGID = 2, PIDTYPE_SID = 3 };
enum { EBUSY_ = 16 };
enum { PF_IDLE_ = 0x2, PF_EXITING_ = 0x4, PF_IO_WORKER_ = 0x10, PF_USER_WORKER_ = 0x4000, PF_KTHREAD_ = 0x00200000 };

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

typedef struct { int counter; } atomic_t;
typedef struct { s64 counter; } atomic64_t;
typedef struct { unsigned long sig[1]; } sigset_t;
typedef struct { u32 val; } kuid_t;
typedef struct { u32 val; } kgid_t;

struct seq_file;

struct ns_common { unsigned int inum; };
struct pid_namespace { unsigned int level; struct ns_common ns; };
struct uts_namespace { struct ns_common ns; };
struct ipc_namespace { struct ns_common ns; };
struct mnt_namespace { struct ns_common ns; };
struct net { struct ns_common ns; };
struct time_namespace { struct ns_common ns; };
struct cgroup_namespace { struct ns_common ns; };
struct user_namespace { struct ns_common ns; };

struct nsproxy {
	struct uts_namespace *uts_ns;
	struct ipc_namespace *ipc_ns;
	struct mnt_namespace *mnt_ns;
	struct net *net_ns;
	struct time_namespace *time_ns;
	struct cgroup_namespace *cgroup_ns;
};

struct upid { int nr; struct pid_namespace *ns; };
struct pid { unsigned int level; struct upid numbers[1]; };

struct cred { kuid_t uid, euid; kgid_t gid, egid; struct user_namespace *user_ns; };

struct rq { unsigned int nr_running; u64 clock; struct task_struct *idle; };
struct cfs_rq { struct rq *rq; };
struct sched_entity { u64 exec_start, sum_exec_runtime; struct cfs_rq *cfs_rq; };

struct sched_info {
	unsigned long pcount;
	unsigned long long run_delay, last_arrival, last_queued;
};

struct task_io_accounting {
	u64 rchar, wchar, syscr, syscw, read_bytes, write_bytes, cancelled_write_bytes;
};

struct task_delay_info {
	u64 blkio_delay, swapin_delay, freepages_delay, thrashing_delay, compact_delay, wpcopy_delay;
	u32 blkio_count, swapin_count, freepages_count, thrashing_count, compact_count, wpcopy_count;
};

struct list_head { struct list_head *next; };
struct timespec64 { s64 tv_sec; long tv_nsec; };
struct sigpending { sigset_t signal; };

struct signal_struct {
	atomic_t live;
	int nr_threads;
	struct sigpending shared_pending;
	int group_exit_code;
	unsigned int flags;
	struct core_state *core_state;
	struct pid *pids[4];
	u64 utime, stime;
	unsigned long min_flt, maj_flt;
	struct task_io_accounting ioac;
	s16 oom_score_adj;
};

struct kernfs_node { u64 id; };
struct cgroup { struct kernfs_node *kn; };
struct css_set { struct cgroup *dfl_cgrp; };

struct qstr { u32 len; const unsigned char *name; };
struct super_block { u32 s_dev; };
struct inode { unsigned long i_ino; struct super_block *i_sb; };
struct hlist_bl_node { struct hlist_bl_node **pprev; };
struct dentry { struct qstr d_name; struct inode *d_inode; struct dentry *d_parent; struct hlist_bl_node d_hash; };
struct vfsmount { struct dentry *mnt_root; };
struct mount { struct mount *mnt_parent; struct dentry *mnt_mountpoint; struct vfsmount mnt; };
struct path { struct vfsmount *mnt; struct dentry *dentry; };
struct file { struct path f_path; struct inode *f_inode; unsigned int f_mode; };
struct backing_file { struct path user_path; };

struct percpu_counter { s64 count; };

struct maple_metadata { unsigned char end; };
struct maple_range_64 { unsigned long pivot[15]; void *slot[16]; struct maple_metadata meta; };
struct maple_arange_64 { unsigned long pivot[9]; void *slot[10]; struct maple_metadata meta; };
struct maple_node { void *parent; };
struct maple_tree { void *ma_root; };

struct swait_queue_head { struct list_head task_list; };
struct swait_queue { struct task_struct *task; struct list_head task_list; };
struct completion { struct swait_queue_head wait; };
struct rt_mutex_base { struct task_struct *owner; };
struct rt_mutex_waiter { struct rt_mutex_base *lock; };
struct mutex { atomic64_t owner; };
struct semaphore { unsigned long last_holder; };
struct rw_semaphore { atomic64_t count, owner; };
struct rwbase_rt { atomic_t readers; };
struct rw_semaphore___rt { struct rwbase_rt rwbase; }; // CONFIG_PREEMPT_RT

typedef struct { void *vdso; } mm_context_t;

struct mm_struct;
struct files_struct;
struct vm_area_struct {
	unsigned long vm_start, vm_end;
	struct mm_struct *vm_mm;
	unsigned long vm_flags, vm_pgoff;
	struct file *vm_file;
};

struct mm_struct {
	unsigned long hiwater_rss, hiwater_vm, total_vm, locked_vm, data_vm, exec_vm, stack_vm;
	atomic64_t pinned_vm, pgtables_bytes;
	int map_count;
	struct percpu_counter rss_stat[4];
	struct file *exe_file;
	struct maple_tree mm_mt;
	struct rw_semaphore mmap_lock;
	mm_context_t context;
	void *pgd;
	unsigned long start_stack, end_code, end_data, arg_start, arg_end;
};

#if defined(__TARGET_ARCH_x86)
struct thread_info { u32 status; u32 cpu; };
struct thread_struct { unsigned long sp, fsbase; };
struct pt_regs { unsigned long orig_ax; };
#elif defined(__TARGET_ARCH_arm64)
struct thread_info { u32 cpu; };
struct cpu_context { unsigned long sp; };
struct thread_struct { struct cpu_context cpu_context; struct { unsigned long tp_value; } uw; };
struct pt_regs { u64 pstate, orig_x0; s32 syscallno; };
#else
#error "amd64 and arm64 only"
#endif

struct task_struct {
	struct thread_info thread_info;
	unsigned int __state;
	unsigned int flags;
	int on_cpu;
	int prio, static_prio, normal_prio;
	unsigned int rt_priority;
	struct sched_entity se;
	unsigned int policy;
	struct sched_info sched_info;
	struct mm_struct *mm;
	int exit_state, exit_code;
	unsigned int in_execve : 1, in_iowait : 1, frozen : 1;
	unsigned int ptrace;
	unsigned long jobctl, blocker;
	struct mutex *blocked_on;
	struct rt_mutex_waiter *pi_blocked_on;
	struct completion *vfork_done;
	void *stack;
	int pid, tgid;
	struct task_struct *real_parent, *parent, *group_leader;
	struct pid *thread_pid;
	struct list_head thread_node;
	u64 utime, stime;
	unsigned long nvcsw, nivcsw;
	u64 start_time, start_boottime;
	unsigned long min_flt, maj_flt;
	const struct cred *real_cred, *cred;
	char comm[16];
	struct nsproxy *nsproxy;
	struct files_struct *files;
	struct signal_struct *signal;
	sigset_t blocked;
	struct sigpending pending;
	struct task_io_accounting ioac;
	struct css_set *cgroups;
	struct task_delay_info *delays;
	struct thread_struct thread;
};

// Iterators that a program opens itself; opaque, on the program's stack.
struct bpf_iter_num { u64 opaque[1]; };
struct bpf_iter_task { u64 opaque[3]; };

struct bpf_iter_meta { struct seq_file *seq; u64 session_id, seq_num; };
struct bpf_iter__task { struct bpf_iter_meta *meta; struct task_struct *task; };

#pragma clang attribute pop

#endif
