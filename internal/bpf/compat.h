// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// Every difference between kernels that the record code must bridge, one
// function each, newest form first, each with the change it bridges.
// Presence decides, never a version number. What only a kernel configuration
// leaves out (CONFIG_SCHED_INFO, _TASK_IO_ACCOUNTING, _TASK_DELAY_ACCT,
// _CGROUPS) is tested where it is read, with the option's name.
#ifndef STACKSHOT_COMPAT_H
#define STACKSHOT_COMPAT_H

// on_cpu: int until 7.2, a byte in 7.3. Size the read by BTF.
static __always_inline u32 task_on_cpu(struct task_struct *t)
{
	if (!bpf_core_field_exists(t->on_cpu)) // !CONFIG_SMP before 6.17
		return 0;
	if (bpf_core_field_size(t->on_cpu) == 1) {
		u8 b = 0;
		bpf_probe_read_kernel(&b, 1, (const char *)t + bpf_core_field_offset(t->on_cpu));
		return b;
	}
	return t->on_cpu;
}

// runs_elsewhere says that the thread runs on another CPU, where nobody can unwind it.
// Only x86 with ORC refuses to (unwind_start). On arm64, and on x86 with frame pointers,
// the kernel would start from what the thread saved when it last gave up its CPU, on a
// stack that has been overwritten since.
static __always_inline bool runs_elsewhere(struct task_struct *t)
{
	return task_on_cpu(t) && t != bpf_get_current_task_btf();
}

// rss_stat: four percpu_counter since "mm: convert mm's rss stats into
// percpu_counter" (f1a7941243c1, in 6.2); a struct of four atomics before.
struct mm_rss_stat___atomic { atomic64_t count[4]; } __attribute__((preserve_access_index));
struct mm_struct___atomic { struct mm_rss_stat___atomic rss_stat; } __attribute__((preserve_access_index));

enum { RSS_FILE, RSS_ANON, RSS_SWAP, RSS_SHMEM, RSS_KINDS };

// mm_counter returns pages; the kernel's own readers show a negative sum as 0.
// A macro: CO-RE moves a subscript only where the compiler sees a constant, and
// our percpu_counter is shorter than the kernel's. 6.1's verifier finds no way
// into an array of atomic_long_t, a typedef: the old form is read by its place.
#define mm_counter(mm, kind)                                                                       \
	({                                                                                             \
		struct mm_struct___atomic *old_ = (void *)(mm);                                            \
		s64 n_ = 0;                                                                                \
		if (bpf_core_field_exists(old_->rss_stat.count))                                           \
			bpf_probe_read_kernel(&n_, sizeof(n_),                                                 \
				(const char *)(mm) + bpf_core_field_offset(old_->rss_stat.count[kind].counter));   \
		else                                                                                       \
			n_ = (mm)->rss_stat[kind].count;                                                       \
		n_ < 0 ? 0 : (u64)n_;                                                                      \
	})

// The runqueue of the CPU a task is on. set_task_rq (kernel/sched/sched.h) points
// se.cfs_rq at it for tasks of every class. Not so without
// CONFIG_FAIR_GROUP_SCHED; the per-CPU variable `runqueues` is no help there,
// since a kernel without CONFIG_KALLSYMS_ALL refuses programs that name it.
static __always_inline struct rq *task_rq(struct task_struct *t)
{
	if (!bpf_core_field_exists(t->se.cfs_rq) || !bpf_core_field_exists(((struct cfs_rq *)0)->rq))
		return 0;
	struct cfs_rq *c = t->se.cfs_rq;
	return c ? c->rq : 0;
}

// Threads that never come from user mode. PF_USER_WORKER came with "fork/vm:
// Move common PF_IO_WORKER behavior to new flag" (in 6.4); the bit was free before.
#define NO_USER_SIDE (PF_KTHREAD_ | PF_IO_WORKER_ | PF_USER_WORKER_)

// The saved user registers, whole, in the order of struct pt_regs. On amd64 the
// words of cs and ss carry event data beside the selector where FRED is in use
// ("x86/ptrace: Add FRED additional information to the pt_regs structure", in 6.9).
#if defined(__TARGET_ARCH_x86)
enum { USER_REGS = 21, USER_REG_CS = 17, USER_REG_SS = 20 };
enum { REG_FP = 4, REG_BP = REG_FP, REG_BX = 5, REG_R10 = 7, REG_R9, REG_R8, REG_CX = 11, REG_DX, REG_SI, REG_DI, REG_ORIG_AX, REG_IP, REG_SP = 19 };
static __always_inline void clean_registers(u64 *v)
{
	v[USER_REG_CS] &= 0xffff;
	v[USER_REG_SS] &= 0xffff;
}
// In 32-bit code: __USER32_CS (arch/x86/include/asm/segment.h), in a call as out
// of one. TS_COMPAT is no answer: 64-bit code may make 32-bit calls.
static __always_inline bool regs_compat(const u64 *v) { return (v[USER_REG_CS] & 0xff) == 0x23; }
#else
#define PSR_MODE32 0x10 // PSR_MODE32_BIT
enum { USER_REGS = 34, REG_FP = 29, REG_SP = 31, REG_PC, REG_PSTATE };
static __always_inline void clean_registers(u64 *v) {}
static __always_inline bool regs_compat(const u64 *v) { return v[REG_PSTATE] & PSR_MODE32; }
#endif

// The saved user registers, per architecture. amd64: a 32-bit task's call
// (TS_COMPAT, arch/x86/include/asm/thread_info.h) passes its arguments in
// other registers. arm64: syscallno is -1 outside a call (ptrace.h NO_SYSCALL).
// call_compat: the call is of the 32-bit ABI, with numbers of its own.
// syscall_nr reads the registers in place; read_syscall takes them from v, a
// copy of all USER_REGS, and from r what that has not.
#if defined(__TARGET_ARCH_x86)
#define TS_COMPAT 0x2
static __always_inline bool call_compat(struct task_struct *t, struct pt_regs *r) { return t->thread_info.status & TS_COMPAT; }
static __always_inline s64 syscall_nr(struct task_struct *t, struct pt_regs *r)
{
	s64 nr = (s64)r->orig_ax;
	return t->thread_info.status & TS_COMPAT ? (s32)nr : nr;
}
static __always_inline void read_syscall(struct task_struct *t, struct pt_regs *r, const u64 *v, struct linux_syscall *s)
{
	s->ip = v[REG_IP];
	s->sp = v[REG_SP];
	if (t->thread_info.status & TS_COMPAT) {
		s->nr = (s32)v[REG_ORIG_AX];
		s->args[0] = (u32)v[REG_BX], s->args[1] = (u32)v[REG_CX], s->args[2] = (u32)v[REG_DX];
		s->args[3] = (u32)v[REG_SI], s->args[4] = (u32)v[REG_DI], s->args[5] = (u32)v[REG_BP];
	} else {
		s->nr = (s64)v[REG_ORIG_AX];
		s->args[0] = v[REG_DI], s->args[1] = v[REG_SI], s->args[2] = v[REG_DX];
		s->args[3] = v[REG_R10], s->args[4] = v[REG_R8], s->args[5] = v[REG_R9];
	}
}
// call_place says where in the saved registers argument n of a call is.
static __always_inline u64 call_place(u32 n, bool compat)
{
	const u8 native[] = { REG_DI, REG_SI, REG_DX, REG_R10, REG_R8 }, other[] = { REG_BX, REG_CX, REG_DX, REG_SI, REG_DI };
	return 8 * (u64)(compat ? other[n] : native[n]);
}
static __always_inline u64 task_fs_base(struct task_struct *t) { return t->thread.fsbase; }
static __always_inline u64 task_sp(struct task_struct *t) { return t->thread.sp; }
#else
static __always_inline bool call_compat(struct task_struct *t, struct pt_regs *r) { return r->pstate & PSR_MODE32; }
static __always_inline s64 syscall_nr(struct task_struct *t, struct pt_regs *r) { return r->syscallno; }
static __always_inline void read_syscall(struct task_struct *t, struct pt_regs *r, const u64 *v, struct linux_syscall *s)
{
	s->nr = r->syscallno;
	s->ip = v[REG_PC];
	s->sp = v[REG_SP];
	s->args[0] = r->orig_x0, s->args[1] = v[1], s->args[2] = v[2];
	s->args[3] = v[3], s->args[4] = v[4], s->args[5] = v[5];
}
static __always_inline u64 call_place(u32 n, bool compat) { return n ? 8 * (u64)n : bpf_core_field_offset(((struct pt_regs *)0)->orig_x0); }
static __always_inline u64 task_fs_base(struct task_struct *t) { return t->thread.uw.tp_value; }
static __always_inline u64 task_sp(struct task_struct *t) { return t->thread.cpu_context.sp; }
#endif

#endif
