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
#include "kcdata.h"
#include "compat.h"
#include "fetch.h"
#include "shared.h"
#include "maps.h"
#include "pid.h"
#include "trap.h"
#include "stop.h"
#include "queue.h"
#include "trace.h"
#include "arena.h"
#include "sink_region.h"
#include "record_task.h"
#include "record_thread.h"
#include "record_more.h"
#include "verify.h"

char _license[] SEC("license") = "GPL";

static __always_inline u32 threads_of(struct task_struct *t)
{
	struct signal_struct *sig = t->signal;
	return sig ? sig->nr_threads : 1;
}

// split_task pushes a large task in parts. A part is its first thread and a
// count: a walk from there comes to the last thread.
static __noinline int split_task(struct stop *s, struct queue_fixed *q, struct trap_worker *w, s32 tgid, u32 index)
{
	struct bpf_iter_task it;
	struct task_struct *t;
	struct task_struct *leader = bpf_task_from_pid(tgid); // an iterator begins at a reference only
	int ok = 1;
	if (!leader)
		return 1; // gone
	w->todo = w->threads = 0;
	bpf_iter_task_new(&it, leader, ITER_PROC_THREADS);
	while ((t = bpf_iter_task_next(&it))) {
		if (!w->todo)
			w->walk = t->pid;
		if (++w->todo < s->split)
			continue;
		if (!still_recording(s)) { // the rest is one part, which nobody takes
			s->census_whole = 0;
			w->todo = threads_of(leader) - w->threads;
			break;
		}
		if (!queue_push(q, index, tgid, w->walk, s->split)) {
			ok = 0;
			break;
		}
		w->threads += s->split;
		w->todo = 0;
	}
	bpf_iter_task_destroy(&it);
	bpf_task_release(leader);
	if (ok && w->todo)
		ok = queue_push(q, index, tgid, w->walk, w->todo);
	return ok;
}

static __always_inline void push_task(struct stop *s, struct queue_fixed *q, struct trap_worker *w, struct task_struct *t)
{
	u32 threads = threads_of(t), index = s->seen_tasks, ok;
	s->seen_tasks++;
	s->seen_threads += threads;
	if (s->split && threads > s->split)
		ok = split_task(s, q, w, t->tgid, index);
	else
		ok = queue_push(q, index, t->tgid, 0, threads);
	if (!ok)
		stop_no_space(s);
}

// census_asked queues the tasks asked for. One that is gone is queued too: it is
// missed when its turn comes.
static __noinline void census_asked(struct stop *s, struct queue_fixed *q, struct trap_worker *w)
{
	w->todo = 0;
	turns(s->asked) {
		u64 *tgid = asked_of(w->number++);
		if (!tgid || !still_recording(s))
			return;
		struct task_struct *t = bpf_task_from_pid(*tgid);
		if (t) {
			push_task(s, q, w, t);
			bpf_task_release(t);
			continue;
		}
		if (!queue_push(q, s->seen_tasks, *tgid, 0, 1))
			stop_no_space(s);
		s->seen_tasks++;
	}
	s->census_whole = 1;
}

// census_all queues every task there is.
static __noinline void census_all(struct stop *s, struct queue_fixed *q, struct trap_worker *w)
{
	struct bpf_iter_task it;
	struct task_struct *t;
	if (s->record_idle) {
		queue_push(q, s->seen_tasks, 0, 0, s->want);
		s->seen_tasks++;
		s->seen_threads += s->want;
	}
	s->census_whole = 1;
	bpf_iter_task_new(&it, 0, ITER_ALL_PROCS);
	while ((t = bpf_iter_task_next(&it))) {
		if (!t->tgid)
			continue; // the iterator begins with CPU 0's idle thread
		if (!still_recording(s)) {
			s->census_whole = 0;
			break;
		}
		push_task(s, q, w, t);
	}
	bpf_iter_task_destroy(&it);
}

// census fills the queues while the other workers drain them.
static __noinline void census(struct stop *s, struct queue_fixed *q, struct trap_worker *w)
{
	w->number = 0;
	if (s->asked)
		census_asked(s, q, w);
	else
		census_all(s, q, w);
	w->number = 0;
	u32 was = __sync_lock_test_and_set(&q->populated, 1);
	hide(was);
}

// unwind_only is the least that a thread can cost: what the rest is held against.
static __noinline int unwind_only(struct sink *to, struct task_struct *t)
{
	if (!sink_room(to, THREAD_MOST))
		return NO_ROOM;
	void *frames = sink_reserve(to, cfg_stack_bytes + sizeof(struct kc_header));
	if (!frames)
		return NO_ROOM;
	bpf_get_task_stack(t, frames, cfg_stack_bytes, 0);
	return 0;
}

// leave_hint notes where a thread is, for verify's fetch_part.
static __always_inline void leave_hint(struct trap_worker *w, struct task_struct *t)
{
	u64 n = w->threads;
	if (n >= HINTS || threads_of(t) < HINTS_FROM)
		return;
	struct hints *h = hints_of(w->number - 1);
	hide(n);
	if (h)
		h->task[n & (HINTS - 1)] = (u64)t;
}

// record_threads writes w->todo threads, from p on.
static __noinline u32 record_threads(struct stop *s, struct sink *to, struct task_struct *p)
{
	struct trap_worker *w = to->w;
	struct bpf_iter_task it;
	struct task_struct *t;
	u32 state = PART_WHOLE;
	bpf_iter_task_new(&it, p, ITER_PROC_THREADS);
	while ((t = bpf_iter_task_next(&it))) {
		if (!w->todo) {
			w->more = 1; // another part has the rest
			break;
		}
		if (!still_recording(s)) {
			state = PART_CUT;
			break;
		}
		if (cfg_floor ? unwind_only(to, t) : record_thread(to, t, slot_of(t->thread_info.cpu), 0)) {
			state = PART_NO_ROOM;
			break;
		}
		if (!cfg_floor)
			leave_hint(w, t);
		w->threads++;
		w->todo--;
	}
	bpf_iter_task_destroy(&it);
	return state;
}

// record_idles writes task 0: the idle thread of every CPU that has a worker.
// Idle threads stand in no list; a worker's runqueue leads to its CPU's.
static __noinline u32 record_idles(struct stop *s, struct sink *to, struct control *c)
{
	struct trap_worker *w = to->w;
	w->todo = w->threads = 0;
	turns(4096) {
		if (!still_recording(s))
			return PART_CUT;
		u32 cpu = w->todo++;
		struct cpu_slot *slot = slot_of(cpu);
		if (!slot)
			break;
		if (!slot->worker_tid)
			continue;
		struct task_struct *worker = bpf_task_from_pid(slot->worker_tid);
		if (!worker)
			continue;
		struct rq *rq = task_rq(worker);
		struct task_struct *idle = rq ? rq->idle : 0;
		long err = 0;
		if (idle) {
			slot->nr_running = rq->nr_running;
			if (!w->threads)
				err = open_task(to, idle, c, 0);
			if (!err)
				err = sink_room(to, THREAD_MOST) ? record_idle_head(to, idle, slot, cpu) : NO_ROOM;
			if (!err)
				err = close_container(to, IDLE_ID | cpu);
		}
		bpf_task_release(worker);
		if (err)
			return PART_NO_ROOM;
		w->threads += idle != 0;
	}
	return w->threads && close_container(to, 0) ? PART_NO_ROOM : PART_WHOLE;
}

// step is how long the last step of an item took; 0 without latency.
static __always_inline u32 step(struct trap_worker *w)
{
	if (!cfg_latency)
		return 0;
	u64 now = bpf_ktime_get_ns(), was = w->clock;
	w->clock = now;
	return now - was;
}

// record_part writes a task, or a part of one. The part that has the leader
// opens the container; the one after which no thread comes closes it.
static __always_inline u32 record_part(struct stop *s, struct sink *to, struct control *c, struct queue_item *it, struct trap_part *part)
{
	struct trap_worker *w = to->w;
	w->walk = it->tgid; // in memory, so that the verifier forgets which
	w->todo = ~0u;
	if (it->first_tid) {
		peek(w->walk) = it->first_tid;
		peek(w->todo) = it->count;
	}
	w->more = 0;
	struct task_struct *p = bpf_task_from_pid(peek(w->walk));
	if (!p)
		return PART_VANISHED;
	part->setup_ns = step(w);
	s32 tgid = it->tgid;
	u32 state = PART_NO_ROOM;
	if (p->pid == tgid) {
		part->flags |= PART_OPENED;
		if (!cfg_floor && open_task(to, p, c, 0))
			goto out;
		part->head_ns = step(w);
	}
	state = record_threads(s, to, p);
	part->threads_ns = step(w);
	if (state == PART_WHOLE && !w->more) {
		part->flags |= PART_CLOSED;
		if (close_container(to, tgid))
			state = PART_NO_ROOM;
	}
out:
	bpf_task_release(p);
	return state;
}

static __noinline void record_item(struct stop *s, struct queue_fixed *q, struct trap_worker *w, u32 number)
{
	struct queue_item *it = item_at(q, number);
	struct trap_part *part = part_of(number);
	struct control *c = the_control();
	struct sink to = { .w = w };
	if (!it || !part || !c)
		return;
	part->flags = part->len = part->more = 0;
	part->state = PART_TAKEN;
	part->began = w->clock;
	if (cfg_latency)
		trace_at(w->clock, TRACE_ITEM, number);
	part->worker = bpf_get_smp_processor_id() + 1;
	w->number = number + 1;
	w->piece_from = w->pos;
	w->last_piece = 0;
	w->threads = 0;
	w->switches = w->runtime = 0;
	w->shallow = 0;
	u32 state = it->tgid ? record_part(s, &to, c, it, part) : record_idles(s, &to, c);
	if (!end_piece(s, w)) {
		stop_no_space(s);
		state = PART_NO_ROOM;
	}
	if (state == PART_NO_ROOM && !(peek(s->word) & STOP_NO_SPACE))
		state = PART_CUT; // there was room, and no time to get at it
	w->number = 0;
	part->threads = w->threads;
	part->switches = w->switches, part->runtime = w->runtime;
	part->state = state;
	part->end_ns = step(w);
	if (cfg_latency)
		trace_at(w->clock, TRACE_ITEM_END, (u64)number << 32 | state);
}

// waited books the time from the first turn that found nothing.
static __always_inline void waited(struct queue_fixed *q, struct trap_worker *w)
{
	u64 slot = w->slot, now = bpf_ktime_get_ns();
	hide(slot);
	struct queue_slot *b = &q->slots[slot & (QUEUE_SLOTS - 1)];
	b->waited_ns += now - w->since;
	b->waits++;
	w->since = 0;
	w->clock = now;
}

static __always_inline void took(struct queue_fixed *q, struct trap_worker *w)
{
	u64 slot = w->slot;
	hide(slot);
	q->slots[slot & (QUEUE_SLOTS - 1)].taken++;
}

// drain takes items until there are none, the pause is spent, or the memory.
static __noinline void drain(struct stop *s, struct queue_fixed *q, struct trap_worker *w)
{
	step(w);
	turns(TURNS_MOST) {
		if (!still_recording(s))
			break;
		s64 n = queue_claim(q, w->kind);
		if (n == CLAIM_NOTHING) {
			if (!w->since)
				w->since = bpf_ktime_get_ns();
			continue;
		}
		if (n < 0)
			break;
		if (w->since)
			waited(q, w);
		took(q, w);
		record_item(s, q, w, n);
	}
	if (w->since)
		waited(q, w);
	struct arenas *a = the_arenas();
	if (a)
		push_tail(a, w);
}

static __always_inline void in_window(struct stop *s, struct trap_worker *w)
{
	struct queue_fixed *q = the_queue();
	if (!q)
		return;
	w->held = trace_now(TRACE_HELD, s->word);
	w->in = 1;
	if (w->test_window_ns)
		await_phase(s, PHASE_COMMITTED, w->held + w->test_window_ns);
	if (w->main) {
		census(s, q, w);
		w->census_ns = trace_now(TRACE_CENSUS, s->seen_tasks) - w->held;
	}
	if (w->works)
		drain(s, q, w);
}

// spin_until is for tests: a CPU that is late.
static __noinline void spin_until(u64 by)
{
	turns(TURNS_MOST) {
		if (bpf_ktime_get_ns() >= by)
			return;
	}
}

// hold waits until every committed CPU has its interrupts off.
static __always_inline bool hold(struct stop *s, struct trap_worker *w)
{
	w->off = bpf_ktime_get_ns();
	u64 by = w->off + s->hold_ns;
	if (by > s->pause_by)
		by = s->pause_by;
	stop_hold(s, 0);
	await_held(s, by);
	stop_hold(s, 1); // in vain if all have come
	return phase_of(observe(&s->word)) == PHASE_COMMITTED;
}

// leave is the way out of a committed stop: all together, the second pass on the
// way if everything was recorded.
static __always_inline void leave(struct stop *s, struct trap_worker *w, struct task_struct *me)
{
	w->drained = trace_now(TRACE_DRAINED, s->word);
	stop_finish(s);
	await_phase(s, PHASE_COMMITTED, s->pause_by);
	w->checked = bpf_ktime_get_ns();
	if (w->in && w->works && !cfg_floor && !(peek(s->word) & STOP_NO_SPACE))
		verify(s, w);
	w->verified = trace_now(TRACE_VERIFIED, w->compared);
	u64 done = __sync_fetch_and_add(&s->verified, 1) + 1;
	if (done < arrived_of(observe(&s->word)))
		await_phase(s, PHASE_DRAINED, s->pause_by);
	stop_release(s);
	w->switched = me->nvcsw + me->nivcsw;
	w->broken = (u32)w->switched - w->broken;
	w->left = trace_now(TRACE_RELEASED, s->word);
	struct cpu_slot *slot = slot_of(bpf_get_smp_processor_id());
	if (slot)
		slot->left = 1;
}

// check_switch: the hook is not told of every switch. The scheduler has its own
// note of when this worker came: where that is not the switch the hook saw, what
// ran here before is not known.
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

// count_in arrives and waits for the decision. False: this CPU is not part of it.
static __always_inline bool count_in(struct stop *s, struct trap_worker *w, struct task_struct *me)
{
	w->entered = bpf_ktime_get_ns();
	check_switch(me);
	if (w->entered >= s->arrive_by)
		stop_expire(s);
	if (!stop_arrive(s, w->main))
		return 0;
	w->arrived = trace_now(TRACE_ARRIVED, s->word);
	w->broken = me->nvcsw + me->nivcsw;
	await_phase(s, PHASE_ARRIVING, s->arrive_by);
	stop_expire(s); // in vain if it was decided
	u64 word = observe(&s->word);
	w->decided = trace_now(TRACE_DECIDED, word);
	return phase_of(word) != PHASE_ABORTED && phase_of(word) != PHASE_ARRIVING;
}

SEC("iter/task")
int trap(struct bpf_iter__task *ctx)
{
	struct task_struct *me = ctx->task;
	struct stop *s = the_stop();
	struct trap_worker *w = worker_of(bpf_get_smp_processor_id());
	unsigned long flags = 0;
	if (!me || !s || !w || w->tid != me->pid)
		return 0;
	if (have(bpf_preempt_disable))
		bpf_preempt_disable();
	if (!count_in(s, w, me))
		goto out;
	if (w->test_hold_ns)
		spin_until(bpf_ktime_get_ns() + w->test_hold_ns);
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
