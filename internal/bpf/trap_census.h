// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// The census of the trap: the main worker fills the queues while the others drain them.
// Large tasks go in as several parts, so that one process with thousands of threads does
// not keep one CPU busy while the others wait. Only the main worker runs this, so the
// counts in struct stop that it writes need no atomics.
#ifndef STACKSHOT_TRAP_CENSUS_H
#define STACKSHOT_TRAP_CENSUS_H

static __always_inline u32 threads_of(struct task_struct *t)
{
	struct signal_struct *sig = t->signal;
	return sig ? sig->nr_threads : 1;
}

// split_task pushes a large task in parts. A part is its first thread and a count: an
// iterator that starts at a thread goes on to the last one. 0: a queue was full. The last
// part is pushed after the loop, with as many threads as are left.
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
		if (!still_recording(s, w)) { // the rest becomes one part: nobody takes it, but it is counted as missed
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

// push_task queues one task and counts it as seen. Seen tasks that nobody records are
// reported as missed, so a task counts before it is known whether the queue has room.
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
		stop_no_space(s, w->pause_by);
}

// census_asked queues the tasks asked for. A task that is gone is queued too: whoever takes
// it does not find it, and the file says so (PART_VANISHED). w->number is the place in
// the list here; in map memory, so that the verifier does not follow it.
static __noinline void census_asked(struct stop *s, struct queue_fixed *q, struct trap_worker *w)
{
	w->todo = 0;
	turns(s->asked) {
		u64 *tgid = asked_of(w->number++);
		if (!tgid || !still_recording(s, w))
			return;
		struct task_struct *t = bpf_task_from_pid(*tgid);
		if (t) {
			push_task(s, q, w, t);
			bpf_task_release(t);
			continue;
		}
		if (!queue_push(q, s->seen_tasks, *tgid, 0, 1))
			stop_no_space(s, w->pause_by);
		s->seen_tasks++;
	}
	s->census_whole = 1;
}

// census_all queues every task there is. The iterator needs RCU; the kernel runs this
// program under it, since it is not sleepable.
static __noinline void census_all(struct stop *s, struct queue_fixed *q, struct trap_worker *w)
{
	struct bpf_iter_task it;
	struct task_struct *t;
	queue_push(q, s->seen_tasks, 0, 0, s->want); // task 0: the idle threads
	s->seen_tasks++;
	s->seen_threads += s->want;
	s->census_whole = 1;
	bpf_iter_task_new(&it, 0, ITER_ALL_PROCS);
	while ((t = bpf_iter_task_next(&it))) {
		if (!t->tgid)
			continue; // the iterator begins with CPU 0's idle thread
		if (!still_recording(s, w)) {
			s->census_whole = 0;
			break;
		}
		push_task(s, q, w, t);
	}
	bpf_iter_task_destroy(&it);
}

// census fills the queues while the other workers drain them. populated is exchanged last,
// after every tail: a worker that sees it and then finds the queues empty knows that
// nothing more will come.
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

#endif
