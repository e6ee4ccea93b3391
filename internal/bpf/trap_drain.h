// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// What a worker of the trap does with the queues: it takes items and records them into its
// chunks, until there are no more items, the pause is spent, or memory runs out. Whoever
// claims an item alone writes its part (trap_part), so no lock is needed.
#ifndef STACKSHOT_TRAP_DRAIN_H
#define STACKSHOT_TRAP_DRAIN_H

// leave_hint notes where a thread is, for verify's fetch_part. Small tasks have none: their
// walk is so short that fetching ahead saves nothing.
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

// record_threads writes w->todo threads, from p on, and returns the part's state. It asks
// before each thread whether it may go on. What was written before a cut stays: the
// part says how many threads it has.
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
		if (!still_recording(s, w)) {
			state = PART_CUT;
			break;
		}
		if (unwinds_only() ? unwind_only(to, t) : record_thread(to, t, slot_of(t->thread_info.cpu), 0)) {
			state = PART_NO_ROOM;
			break;
		}
		if (!unwinds_only())
			leave_hint(w, t);
		w->threads++;
		w->todo--;
	}
	bpf_iter_task_destroy(&it);
	return state;
}

// record_idles writes task 0: the idle thread of every CPU that has a worker. No list has
// the idle threads; the runqueue of a CPU's worker leads to that CPU's. The first CPU
// that has no slot ends the loop, whose bound is for the verifier.
static __noinline u32 record_idles(struct stop *s, struct sink *to, struct control *c)
{
	struct trap_worker *w = to->w;
	w->todo = w->threads = 0;
	turns(4096) {
		if (!still_recording(s, w))
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
		// A worker that was moved would lead to another CPU's idle thread.
		struct rq *rq = worker->thread_info.cpu == cpu ? task_rq(worker) : 0;
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

// step returns how long the last step of an item took (ns), and starts the next; 0 without
// latency, to save the clock reads.
static __always_inline u32 step(struct trap_worker *w)
{
	if (!cfg_latency)
		return 0;
	u64 now = bpf_ktime_get_ns(), was = w->clock;
	w->clock = now;
	return now - was;
}

// record_part writes a task, or a part of one. The part that begins with the leader opens
// the container; the part after which no thread comes closes it. Collation joins the
// parts in census order. An item with a first thread is a part of a large task.
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
		if (!unwinds_only() && (open_task(to, p, c, 0) || record_maps(to)))
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
	// TAKEN is written before anything is recorded: an item whose worker never came to its end stays so.
	part->flags = part->len = part->more = 0;
	part->state = PART_TAKEN;
	if (cfg_latency)
		trace_at(w->clock, TRACE_ITEM, number);
	part->worker = bpf_get_smp_processor_id() + 1;
	w->number = number + 1;
	w->piece_from = w->pos;
	w->last_piece = 0;
	w->threads = 0;
	w->switches = w->runtime = 0;
	w->shallow = 0;
	// What the last item left may be of a process that has changed since.
	forget_leaf();
	forget_tables();
	forget_futexes();
	u32 state = it->tgid ? record_part(s, &to, c, it, part) : record_idles(s, &to, c);
	if (!end_piece(s, w)) {
		stop_no_space(s, w->pause_by);
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

// waited adds the time since the first turn that found nothing to this worker's queue slot,
// which it alone writes. Item times then begin now, so that they have no waiting in them.
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

// in_vain counts a turn that found nothing. True: the clock stands still (stop.h), so no
// deadline would ever pass, and the worker must leave. Not inline: 6.12's verifier walks
// all that follows once more for what this leaves on the stack.
static __noinline int in_vain(struct trap_worker *w)
{
	if (!w->since) {
		w->since = w->idle_at = bpf_ktime_get_ns();
		w->idle = 0;
	}
	if (++w->idle < CLOCK_TURNS)
		return 0;
	u64 was = w->idle_at;
	w->idle_at = bpf_ktime_get_ns();
	w->idle = 0;
	return w->idle_at <= was;
}

// took counts an item in this worker's queue slot.
static __always_inline void took(struct queue_fixed *q, struct trap_worker *w)
{
	u64 slot = w->slot;
	hide(slot);
	q->slots[slot & (QUEUE_SLOTS - 1)].taken++;
}

// drain takes items until there are no more, the pause is spent, or memory runs out. A queue
// that is empty before the census is over only means to wait. At the end the rest of the
// worker's chunk goes to the freelist, where others may need it.
static __noinline void drain(struct stop *s, struct queue_fixed *q, struct trap_worker *w)
{
	forget_waits();
	step(w);
	turns(TURNS_MOST) {
		if (!still_recording(s, w))
			break;
		s64 n = queue_claim(q, w->kind);
		if (n == CLAIM_NOTHING) {
			if (in_vain(w))
				break;
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

#endif
