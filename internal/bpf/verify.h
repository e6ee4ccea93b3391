// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// The second pass compares each thread's counts with those that were recorded. A thread
// that ran in the window has more context switches or more run time. Both only grow, so
// sums over a part tell whether any of its threads ran: no thread can make up for
// another. Only if the sums differ are its threads written down one by one, and the
// loader finds out which of them ran.
#ifndef STACKSHOT_VERIFY_H
#define STACKSHOT_VERIFY_H

// still_verifying: the first worker that leaves ends DRAINED, and the pass with it.
static __always_inline bool still_verifying(struct stop *s, struct trap_worker *w)
{
	return phase_of(peek(s->word)) == PHASE_DRAINED && bpf_ktime_get_ns() < w->pause_by;
}

static __always_inline void sum_thread(struct trap_worker *w, struct task_struct *t)
{
	w->seen++;
	w->switches += t->nvcsw + t->nivcsw;
	w->runtime += t->se.sum_exec_runtime;
}

// fetch_part loads what the walk over a part will read. The walk itself goes from thread
// to thread and would wait for each. Where the tasks are, record_threads noted in this
// window (hints). If one has been freed on a CPU that was not stopped, nothing bad comes
// of it: a load by a cast pointer may fault and then gives 0, and its value is dropped.
static __noinline void fetch_part(u32 number, u32 threads)
{
	struct hints *h = hints_of(number);
	if (!h)
		return;
	for (u32 i = 0; i < HINTS && i < threads; i++) {
		struct task_struct *t = bpf_rdonly_cast((void *)h->task[i], bpf_core_type_id_kernel(struct task_struct));
		fetch(t->thread_node.next);
		fetch(t->signal);
		fetch(t->nvcsw);
		fetch(t->se.sum_exec_runtime);
	}
}

// sum_threads adds up w->todo threads from p on: those that the part had when it was
// recorded. The sums are in map memory, so that the verifier need not follow them
// through the loop.
static __noinline void sum_threads(struct trap_worker *w, struct task_struct *p)
{
	struct bpf_iter_task it;
	struct task_struct *t;
	bpf_iter_task_new(&it, p, ITER_PROC_THREADS);
	while ((t = bpf_iter_task_next(&it))) {
		if (!w->todo)
			break;
		w->todo--;
		sum_thread(w, t);
	}
	bpf_iter_task_destroy(&it);
}

// list_threads writes down the counts of each of them. Places are handed out by a
// fetch-and-add, so each has one writer. Without a free place the part is only known to
// have changed (PART_UNNAMED).
static __noinline u32 list_threads(struct stop *s, struct trap_worker *w, struct task_struct *p, u32 part)
{
	struct bpf_iter_task it;
	struct task_struct *t;
	u32 verdict = PART_CHANGED;
	bpf_iter_task_new(&it, p, ITER_PROC_THREADS);
	while ((t = bpf_iter_task_next(&it))) {
		if (!w->todo)
			break;
		w->todo--;
		struct trap_second *e = second_of(__sync_fetch_and_add(&s->seconds, 1));
		if (!e) {
			verdict = PART_UNNAMED;
			break;
		}
		e->tid = t->pid, e->part = part;
		e->switches = t->nvcsw + t->nivcsw;
		e->runtime = t->se.sum_exec_runtime;
	}
	bpf_iter_task_destroy(&it);
	return verdict;
}

// verify_part looks at one part a second time and returns its verdict. Our own threads run
// in the window, and idle threads have no counts worth comparing. A part that was not
// recorded whole has no sums to compare with.
static __noinline u32 verify_part(struct stop *s, struct trap_worker *w, struct queue_item *it, struct trap_part *part, u32 number)
{
	if (part->state != PART_WHOLE || !it->tgid || it->tgid == cfg_self_tgid)
		return PART_UNCHECKED;
	w->walk = it->tgid; // in memory, so that the verifier forgets which
	if (it->first_tid)
		peek(w->walk) = it->first_tid;
	struct task_struct *p = bpf_task_from_pid(peek(w->walk));
	if (!p)
		return PART_GONE;
	w->switches = w->runtime = 0;
	w->seen = 0;
	w->todo = part->threads;
	if (part->threads == 1)
		sum_thread(w, p); // most tasks: spare the iterator
	else {
		if (part->threads >= HINTS_FROM)
			fetch_part(number, part->threads);
		sum_threads(w, p);
	}
	u32 verdict = PART_UNCHANGED;
	// Fewer threads than before: one ended, which it cannot do without running.
	if (w->seen != part->threads || w->switches != part->switches || w->runtime != part->runtime) {
		w->todo = part->threads;
		verdict = list_threads(s, w, p, number);
	}
	w->compared += w->seen;
	bpf_task_release(p);
	return verdict;
}

static __noinline void verify_item(struct stop *s, struct queue_fixed *q, struct trap_worker *w, u32 number)
{
	struct queue_item *it = item_at(q, number);
	struct trap_part *part = part_of(number);
	if (it && part)
		part->verdict = verify_part(s, w, it, part, number);
}

// verify takes items by number, whoever recorded them, until all are done or the pause is
// spent. No queue is needed: all items are pushed by now, and a fetch-and-add gives each
// number to one worker. What nobody came to keeps the verdict UNCHECKED.
static __noinline void verify(struct stop *s, struct trap_worker *w)
{
	struct queue_fixed *q = the_queue();
	if (!q)
		return;
	delay_verify(s, w); // tests alone
	turns(TURNS_MOST) {
		if (!still_verifying(s, w))
			break;
		u32 n = __sync_fetch_and_add(&s->verify_next, 1);
		if (n >= peek(q->pushed))
			break;
		verify_item(s, q, w, n);
	}
}

#endif
