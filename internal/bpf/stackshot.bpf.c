//go:build ignore
// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// The programs of engine `pull`, and those that all share. One object for every kernel from 6.1; the
// loader takes out what the running kernel cannot have and says why.
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include "kernelhalf.h"
#include "kcdata.h"
#include "knobs.h"
#include "compat.h"
#include "shared.h"
#include "fetch.h"
#include "sink_seq.h"
#include "maps.h"
#include "pid.h"
#include "kernelword.h"
#include "ram.h"
#include "maple.h"
#include "mapped_path.h"
#include "record_maps.h"
#include "record_task.h"
#include "record_thread.h"
#include "usermem.h"
#include "record_user.h"
#include "record_cmdline.h"
#include "wait_call.h"
#include "wait_work.h"
#include "wait_lock.h"
#include "wait_owner.h"
#include "wait_scan.h"
#include "wait_futex.h"
#include "file_kind.h"
#include "wait_socket.h"
#include "wait_device.h"
#include "wait_object.h"
#include "wait_args.h"
#include "wait_sets.h"
#include "wait_file.h"
#include "wait_begin.h"
#include "record_wait.h"
#include "record_more.h"
#include "sample.h"

// The kernel shows all that is said of a thread, and before the first of its task,
// in one buffer. userstacks.go bounds the stacks by what is left of it.
enum { SEQ_FIXED = 13 << 9 };
_Static_assert(TASK_ROOM + sizeof(struct thread_head) + sizeof(struct io_item) + sizeof(struct delay_item) +
	sizeof(struct ns_item) + sizeof(struct user_items) + WAIT_MOST + sizeof(struct walk_item) + sizeof(struct latency_item) +
	8 * sizeof(struct kc_header) <= SEQ_FIXED, "records but for the stacks");

char _license[] SEC("license") = "GPL";

// Room for one record per CPU. A worker is pinned and alone runs these
// programs on its CPU, so nobody else writes here.
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct scratch);
} scratch SEC(".maps");

static __always_inline struct scratch *my_scratch(void)
{
	u32 zero = 0;
	return bpf_map_lookup_elem(&scratch, &zero);
}

// begin_task sets begun before it writes: if the write does not fit, the kernel shows the
// object again, and the same is written once more.
static __always_inline long begin_task(struct sink *s, struct task_struct *t, struct control *c,
	struct cpu_slot *slot, u32 level)
{
	slot->begun = 1;
	slot->open_id = tgid_in(t, level);
	return open_task(s, t, c, level);
}

// record_task shows one task. The leader opens the container, every thread adds its own,
// and the call without a task, at the end of the iteration, closes it. This CPU's worker
// enters it through a link that is scoped to one tgid. The worker clears begun, done and
// threads between two tasks; done tells it that the task is whole.
SEC("iter/task")
int record_task(struct bpf_iter__task *ctx)
{
	struct task_struct *t = ctx->task;
	struct control *c = the_control();
	struct cpu_slot *slot = slot_of(bpf_get_smp_processor_id());
	struct sink s = { .seq = ctx->meta->seq, .scratch = my_scratch() };

	if (!c || !slot || !s.scratch)
		return 0;
	if (!t) {
		if (slot->begun && !record_maps(&s) && close_container(&s, slot->open_id) == 0)
			slot->done = 1;
		return 0;
	}
	u32 level = ns_level();
	if (t->pid == t->tgid) {
		forget_tables();
		forget_waits();
		if (begin_task(&s, t, c, slot, level))
			return 0;
	}
	if (!slot->begun)
		return 0; // the leader is not there: the task is being reaped
	if (record_thread(&s, t, slot_of(t->thread_info.cpu), level) == 0)
		slot->threads++;
	return 0;
}

// One line of the census: a thread group and how many threads it has.
struct census_entry { u32 tgid, threads; };
const struct census_entry *unused_census __attribute__((unused));

// census lists the thread groups of the machine. It also notes what the loader cannot read
// itself: the depth of our pid namespace, and, in its first run (in Open), the two clocks.
SEC("iter/task")
int census(struct bpf_iter__task *ctx)
{
	struct task_struct *t = ctx->task;
	struct control *c = the_control();
	if (!t || !c || t->pid != t->tgid)
		return 0;
	u32 level = ns_level();
	c->ns_level = level;
	if (!c->ktime_ns) {
		c->ktime_ns = bpf_ktime_get_ns();
		c->boot_ns = bpf_ktime_get_boot_ns();
	}
	struct census_entry e = { .tgid = tgid_in(t, level), .threads = 1 };
	struct signal_struct *sig = t->signal;
	if (sig)
		e.threads = sig->nr_threads;
	bpf_seq_write(ctx->meta->seq, &e, sizeof(e));
	return 0;
}

// What a thread counts in the second pass (internal/capture/second.go).
struct second { u32 tid, reserved; u64 switches, runtime; };
const struct second *unused_second __attribute__((unused));

// recount is the second pass of engine pull: it reads every thread's context switches and
// run time once more. Our own threads run in the window, so they are left out.
SEC("iter/task")
int recount(struct bpf_iter__task *ctx)
{
	struct task_struct *t = ctx->task;
	if (!t)
		return 0;
	u32 level = ns_level();
	if (tgid_in(t, level) == cfg_self_tgid)
		return 0;
	struct second e = {
		.tid = tid_in(t, level), .switches = t->nvcsw + t->nivcsw, .runtime = t->se.sum_exec_runtime,
	};
	bpf_seq_write(ctx->meta->seq, &e, sizeof(e));
	return 0;
}

// record_idle shows task 0: the idle thread of every CPU that has a worker of ours. No list
// has the idle threads, but the runqueue of a CPU's worker leads to that CPU's. So the
// iteration is over the threads of our own process, and of each worker its CPU's idle
// thread is shown. The thread ids are 1<<32 | CPU.
SEC("iter/task")
int record_idle(struct bpf_iter__task *ctx)
{
	struct task_struct *t = ctx->task;
	struct control *c = the_control();
	struct cpu_slot *mine = slot_of(bpf_get_smp_processor_id());
	struct sink s = { .seq = ctx->meta->seq, .scratch = my_scratch() };

	if (!c || !mine || !s.scratch)
		return 0;
	if (!t) {
		if (mine->begun && close_container(&s, 0) == 0)
			mine->done = 1;
		return 0;
	}
	u32 cpu = t->thread_info.cpu;
	struct cpu_slot *slot = slot_of(cpu);
	if (!slot || !slot->worker_tid || slot->worker_tid != tid_in(t, ns_level()))
		return 0;
	struct rq *rq = task_rq(t);
	struct task_struct *idle = rq ? rq->idle : 0;
	if (!idle)
		return 0;
	slot->nr_running = rq->nr_running;
	if (!mine->begun && begin_task(&s, idle, c, mine, 0))
		return 0;
	if (record_idle_head(&s, idle, slot, cpu))
		return 0;
	if (close_container(&s, IDLE_ID | cpu) == 0)
		mine->threads++;
	return 0;
}

// note_own remembers which thread one of our own ordinary threads displaced: without us it
// would still run, so it counts as the CPU's (mark_on_cpu). If one of ours follows
// another, nothing changes. Any other switch clears the note.
static __always_inline void note_own(struct cpu_slot *slot, struct task_struct *prev, struct task_struct *next, u32 level)
{
	bool ours = tgid_in(next, level) == cfg_self_tgid;
	if (ours && tgid_in(prev, level) == cfg_self_tgid)
		return;
	slot->displaced_tid = ours ? tid_in(prev, level) : 0;
	slot->displaced_at = bpf_ktime_get_ns();
}

// on_switch notes, while armed, which thread each worker displaced and when the worker gave
// the CPU back. It runs on the CPU that switches, with interrupts off, so nobody else
// writes this slot's fields at that moment. The runqueue's clock is noted so that the
// trap can compare it with the scheduler's own note (check_switch).
SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	struct control *c = the_control();
	if (!c || !c->armed)
		return 0;
	u32 cpu = bpf_get_smp_processor_id();
	struct cpu_slot *slot = slot_of(cpu);
	if (!slot || !slot->worker_tid)
		return 0;
	u32 level = c->ns_level;
	if (slot->left) { // the worker may run again, before the hook is off
		if (!slot->gone_ns && tid_in(prev, level) == slot->worker_tid)
			slot->gone_ns = bpf_ktime_get_ns();
		return 0;
	}
	if (tid_in(next, level) != slot->worker_tid) {
		note_own(slot, prev, next, level);
		return 0;
	}
	slot->ran_tid = tid_in(prev, level);
	slot->ran_tgid = tgid_in(prev, level);
	if (slot->ran_tgid != cfg_self_tgid)
		slot->displaced_tid = 0;
	slot->ran_known = 1;
	slot->stop_ns = bpf_ktime_get_ns();
	struct rq *rq = task_rq(next);
	if (rq)
		slot->rq_clock = rq->clock;
	return 0;
}

// sample is entered by a perf event of its CPU, on top of whatever the event interrupts. It
// writes to map memory (sample.h); the event has no buffer of its own.
SEC("perf_event")
int sample(struct sample_ctx *ctx)
{
	struct control *c = the_control();
	if (c)
		sample_cpu(ctx, c);
	return 0;
}
