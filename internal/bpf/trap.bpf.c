//go:build ignore
// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// Engine `trap`: one program, entered on every CPU by that CPU's worker with a
// read(2), that stops the CPU, records together with the others, and lets go.
// Everything called here is static: with preemption or interrupts off, older
// verifiers refuse global functions.
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include "kfunc.h"
#include "kernelhalf.h"
#include "kcdata.h"
#include "knobs.h"
#include "compat.h"
#include "shared.h"
#include "fetch.h"
#include "maps.h"
#include "region.h"
#include "pid.h"
#include "stop_word.h"
#include "trap.h"
#include "stop.h"
#include "queue.h"
#include "trace.h"
#include "arena.h"
#include "sink_region.h"
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
#include "trap_knobs.h"
#include "trap_census.h"
#include "trap_drain.h"
#include "verify.h"

char _license[] SEC("license") = "GPL";

// in_window is what a CPU does while all are held. trace_now returns the time, so each stamp
// of the worker and its trace event are of one moment. The census comes before the main
// worker's own drain: the others wait for its items.
static __always_inline void in_window(struct stop *s, struct trap_worker *w)
{
	struct queue_fixed *q = the_queue();
	if (!q)
		return;
	w->held = trace_now(TRACE_HELD, s->word);
	w->in = 1;
	delay_window(s, w); // tests alone
	if (w->main) {
		census(s, q, w);
		w->census_ns = trace_now(TRACE_CENSUS, s->seen_tasks) - w->held;
	}
	if (w->works)
		drain(s, q, w);
}

// fix_deadlines takes the stop's deadlines, which the main worker's Go side computed, but
// no later than the budgets counted from this CPU's entry. So a wrong deadline cannot
// hold this CPU for longer than the budget.
static __always_inline void fix_deadlines(struct stop *s, struct trap_worker *w)
{
	u64 arrive = w->entered + s->arrive_ns, pause = w->entered + s->pause_ns;
	w->arrive_by = s->arrive_by < arrive ? s->arrive_by : arrive;
	w->pause_by = s->pause_by < pause ? s->pause_by : pause;
}

// hold waits until every committed CPU has its interrupts off. True: all have. A CPU
// whose interrupts are on may still change what is recorded, so nobody records before.
// The wait is short (hold_ns): another CPU may wait for this one to answer an interrupt.
static __always_inline bool hold(struct stop *s, struct trap_worker *w)
{
	w->off = bpf_ktime_get_ns();
	u64 by = w->off + s->hold_ns;
	if (by > w->pause_by)
		by = w->pause_by;
	stop_hold(s, 0, w->pause_by);
	await_held(s, by);
	stop_hold(s, 1, w->pause_by); // in vain if all have come
	return all_held(s);
}

// leave is the way out of a committed stop. All CPUs leave together. On the way they make
// the second pass, unless memory ran out: it begins when the last one has finished
// (DRAINED), since it compares with what all have recorded. The last one to end it
// releases the others. Whoever is at its pause deadline waits for nobody.
static __always_inline void leave(struct stop *s, struct trap_worker *w, struct task_struct *me)
{
	w->drained = trace_now(TRACE_DRAINED, s->word);
	stop_finish(s, w->pause_by);
	await_phase(s, PHASE_COMMITTED, w->pause_by);
	w->checked = bpf_ktime_get_ns();
	if (w->in && w->works && !unwinds_only() && !(peek(s->word) & STOP_NO_SPACE))
		verify(s, w); // in DRAINED alone: not if the kernel panics
	w->verified = trace_now(TRACE_VERIFIED, w->compared);
	u64 done = __sync_fetch_and_add(&s->verified, 1) + 1;
	if (done < arrived_of(observe(&s->word)))
		await_phase(s, PHASE_DRAINED, w->pause_by);
	stop_release(s, w->pause_by);
	w->switched = me->nvcsw + me->nivcsw;
	w->broken = (u32)w->switched - w->broken;
	// From here on interrupts may come, so say so before they are turned on.
	stop_leave(s);
	w->left = trace_now(TRACE_RELEASED, s->word);
	struct cpu_slot *slot = slot_of(bpf_get_smp_processor_id());
	if (slot)
		slot->left = 1;
}

// check_switch compares two notes of when this worker came to its CPU: the switch hook's
// and the scheduler's. The hook does not see every switch. If the two differ, the hook
// saw an earlier one, and nobody knows which thread ran here before the worker.
static __always_inline void check_switch(struct task_struct *me)
{
	struct cpu_slot *slot = slot_of(bpf_get_smp_processor_id());
	if (!slot || !slot->rq_clock || !bpf_core_field_exists(me->sched_info.last_arrival))
		return;
	if (me->sched_info.last_arrival == slot->rq_clock)
		return;
	slot->ran_known = slot->displaced_tid = 0;
	slot->rq_clock = slot->stop_ns = 0;
}

// count_in arrives and waits for the decision. False: this CPU is not part of the stop. A
// worker that enters after the arrival deadline takes the decision, if nobody has, and is
// then too late itself. Interrupts are still on here: until the decision this CPU must
// answer others.
static __always_inline bool count_in(struct stop *s, struct trap_worker *w, struct task_struct *me)
{
	w->entered = bpf_ktime_get_ns();
	fix_deadlines(s, w);
	check_switch(me);
	if (w->entered >= w->arrive_by)
		stop_expire(s, w->pause_by);
	if (!stop_arrive(s, w->main, w->arrive_by))
		return 0;
	w->arrived = trace_now(TRACE_ARRIVED, s->word);
	w->broken = me->nvcsw + me->nivcsw;
	await_phase(s, PHASE_ARRIVING, w->arrive_by);
	stop_expire(s, w->pause_by); // in vain if it was decided
	u64 word = observe(&s->word);
	w->decided = trace_now(TRACE_DECIDED, word);
	u64 p = phase_of(word);
	return p != PHASE_ABORTED && p != PHASE_ARRIVING && p != PHASE_PANICKED;
}

// trap is entered by the worker's read(2). The iterator is over the worker's own thread, so it
// runs once. Preemption is off before the CPU number is read: otherwise the worker could be
// moved, and act for a CPU that runs on. Interrupts go off only once the stop is committed.
// Every way out after that passes the label, where preemption is enabled again.
SEC("iter/task")
int trap(struct bpf_iter__task *ctx)
{
	struct task_struct *me = ctx->task;
	struct stop *s = the_stop();
	unsigned long flags = 0;
	if (!me || !s)
		return 0;
	if (have(bpf_preempt_disable))
		bpf_preempt_disable();
	// A worker that was moved is nobody here: its CPU runs on.
	struct trap_worker *w = worker_of(bpf_get_smp_processor_id());
	if (!w || w->tid != me->pid || !count_in(s, w, me))
		goto out;
	delay_hold(); // tests alone
	if (have(bpf_preempt_disable))
		w->level = 1;
	if (have(bpf_local_irq_save)) {
		w->level = 3;
		bpf_local_irq_save(&flags);
	}
	if (hold(s, w))
		in_window(s, w);
	leave(s, w, me);
	if (have(bpf_local_irq_save))
		bpf_local_irq_restore(&flags);
out:
	if (have(bpf_preempt_disable))
		bpf_preempt_enable();
	return 0;
}
