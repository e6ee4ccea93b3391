//go:build ignore
// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// One program for each thing that the engines ask of the kernel. None is ever
// run: the verifier's answer to it alone is the answer. A function may stand in
// the kernel's BTF and be refused all the same to this type of program.
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#undef __weak
#define __weak // a probe without its function is no probe
#include "kfunc.h"

char _license[] SEC("license") = "GPL";

#define FRAMES 8

static __always_inline void stack_of(struct task_struct *t)
{
	u64 frames[FRAMES];
	bpf_get_task_stack(t, frames, sizeof(frames), 0);
}

SEC("iter/task")
int iter_num(struct bpf_iter__task *ctx)
{
	turns(1)
		bpf_ktime_get_ns();
	return 0;
}

SEC("iter/task")
int iter_task(struct bpf_iter__task *ctx)
{
	struct bpf_iter_task it;
	bpf_iter_task_new(&it, 0, ITER_ALL_PROCS);
	bpf_iter_task_next(&it);
	bpf_iter_task_destroy(&it);
	return 0;
}

SEC("iter/task")
int from_pid(struct bpf_iter__task *ctx)
{
	struct task_struct *t = bpf_task_from_pid(1);
	if (t)
		bpf_task_release(t);
	return 0;
}

SEC("iter/task")
int preempt_off(struct bpf_iter__task *ctx)
{
	bpf_preempt_disable();
	bpf_preempt_enable();
	return 0;
}

SEC("iter/task")
int irq_off(struct bpf_iter__task *ctx)
{
	unsigned long flags;
	bpf_local_irq_save(&flags);
	bpf_local_irq_restore(&flags);
	return 0;
}

SEC("iter/task")
int stack_preempt_off(struct bpf_iter__task *ctx)
{
	struct task_struct *t = ctx->task;
	if (!t)
		return 0;
	bpf_preempt_disable();
	stack_of(t);
	bpf_preempt_enable();
	return 0;
}

SEC("iter/task")
int stack_irq_off(struct bpf_iter__task *ctx)
{
	struct task_struct *t = ctx->task;
	unsigned long flags;
	if (!t)
		return 0;
	bpf_local_irq_save(&flags);
	stack_of(t);
	bpf_local_irq_restore(&flags);
	return 0;
}

SEC("iter/task_file")
int on_file(void *ctx)
{
	return 0;
}

SEC("tp_btf/sched_switch")
int on_sched_switch(u64 *ctx)
{
	return 0;
}

SEC("perf_event")
int on_perf_event(void *ctx)
{
	u64 frames[FRAMES];
	bpf_get_stack(ctx, frames, sizeof(frames), 0);
	return 0;
}
