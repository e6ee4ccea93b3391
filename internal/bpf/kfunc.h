// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// Kernel functions, by the change that brought each. Weak ones may be missing;
// the code asks by have(), and the verifier cuts out what is not there.
#ifndef STACKSHOT_KFUNC_H
#define STACKSHOT_KFUNC_H

#ifndef __ksym
#define __ksym __attribute__((section(".ksyms")))
#endif

// Loops, in 6.4; task iterators, in 6.7.
extern int bpf_iter_num_new(struct bpf_iter_num *it, int start, int end) __ksym;
extern int *bpf_iter_num_next(struct bpf_iter_num *it) __ksym;
extern void bpf_iter_num_destroy(struct bpf_iter_num *it) __ksym;
extern int bpf_iter_task_new(struct bpf_iter_task *it, struct task_struct *task, unsigned int flags) __ksym;
extern struct task_struct *bpf_iter_task_next(struct bpf_iter_task *it) __ksym;
extern void bpf_iter_task_destroy(struct bpf_iter_task *it) __ksym;
enum { ITER_ALL_PROCS = 0, ITER_PROC_THREADS = 2 };

extern struct task_struct *bpf_task_from_pid(s32 pid) __ksym; // by the first namespace's numbers
extern void bpf_task_release(struct task_struct *p) __ksym;

// In 6.2. What comes of it may be read, wherever it points.
extern void *bpf_rdonly_cast(const void *obj, u32 btf_id) __ksym;

// In 6.10 and 6.14.
extern void bpf_preempt_disable(void) __ksym __weak;
extern void bpf_preempt_enable(void) __ksym __weak;
extern void bpf_local_irq_save(unsigned long *flags) __ksym __weak;
extern void bpf_local_irq_restore(unsigned long *flags) __ksym __weak;

#define have(kfunc) (!!(kfunc))

// turns(n) repeats at most n times (n up to 2^23). The count is the kernel's:
// nothing of it is in a register that the verifier would have to follow.
#define TURNS_MOST (8 * 1024 * 1024)
#define turns(n)                                                                                     \
	for (struct bpf_iter_num turn_ __attribute__((aligned(8), cleanup(bpf_iter_num_destroy))),       \
		 *once_ __attribute__((unused)) = (bpf_iter_num_new(&turn_, 0, (n)),                         \
			 (void)bpf_iter_num_destroy, (void *)0);                                                 \
		bpf_iter_num_next(&turn_);)

// turns_unless(n, over) asks every 64 turns whether it is over: for loops that
// take one turn as a rule, and may take long where very many CPUs contend.
#define turns_unless(n, over)                                                                        \
	for (struct bpf_iter_num turn_ __attribute__((aligned(8), cleanup(bpf_iter_num_destroy))),       \
		 *once_ = (bpf_iter_num_new(&turn_, 0, (n)), (void)bpf_iter_num_destroy, (void *)0);         \
		(once_ = (void *)bpf_iter_num_next(&turn_)) && ((*(int *)once_ & 63) != 63 || !(over));)

// observe reads a word in order: what the program reads next, it reads after it. An
// atomic whose result is used, so it takes the line from everybody else: never to
// wait with; a wait reads by peek, and observes what it has seen to change. The
// compiler must not know that the word stays as it is: of an add of 0 it makes an
// or, and that is a loop without an end of its own (x86: lock cmpxchg).
#define observe(p)                                      \
	({                                                  \
		__typeof__(*(p)) nothing_ = 0;                  \
		asm volatile("" : "+r"(nothing_));              \
		__sync_fetch_and_add((p), nothing_);            \
	})

#endif
