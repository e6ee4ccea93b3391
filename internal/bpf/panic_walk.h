// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// The walk of a panic: all threads of the machine, by one CPU, with nobody's help. Each leader
// opens its task's container, and its threads follow. Nothing is stopped: a thread
// that runs on another CPU is marked and has no stack.
#ifndef STACKSHOT_PANIC_WALK_H
#define STACKSHOT_PANIC_WALK_H

enum { ITER_ALL_THREADS = 1 };

// Kept back for the end of the container that is open when room runs out.
enum { LAST_END = 64 };

static __always_inline struct panic_work *panic_work_of(void)
{
	u32 zero = 0;
	return bpf_map_lookup_elem(&panic_works, &zero);
}

static __always_inline struct panic_run *the_run(void) { return region_at(PANIC_RUN_AT, sizeof(struct panic_run)); }

// note_progress says that all is whole up to here. Open is changed with it, and the bytes
// come last: what a reader takes the bytes for is written before.
static __noinline void note_progress(struct panic_run *r, struct panic_work *w)
{
	r->open = w->task;
	u64 was = __sync_lock_test_and_set(&r->bytes, (u64)(w->pos - cfg_records_at));
	hide(was);
}

// end_task closes the open container.
static __noinline int end_task(struct sink *to, struct panic_run *r)
{
	struct panic_work *w = to->w;
	u64 task = w->task;
	if (!task)
		return 0;
	if (close_container(to, task - 1))
		return NO_ROOM;
	w->task = 0;
	note_progress(r, w);
	return 0;
}

// begin_walked opens the container of a thread's task. As a rule the thread is the leader. Where
// the leader was reaped meanwhile, the first thread that is met speaks for its task.
static __always_inline int begin_walked(struct sink *to, struct panic_run *r, struct task_struct *t, struct control *c)
{
	struct panic_work *w = to->w;
	forget_leaf();
	forget_tables();
	forget_futexes();
	w->shallow = 0;
	if (open_task(to, t, c, 0))
		return NO_ROOM;
	if (record_maps(to))
		return NO_ROOM;
	w->task = (u64)t->tgid + 1;
	r->tasks++;
	note_progress(r, w);
	return 0;
}

static __always_inline int walk_thread(struct sink *to, struct panic_run *r, struct task_struct *t, struct control *c)
{
	struct panic_work *w = to->w;
	if (w->task != (u64)t->tgid + 1) {
		if (end_task(to, r) || begin_walked(to, r, t, c))
			return NO_ROOM;
	}
	if (record_thread(to, t, 0, 0))
		return NO_ROOM;
	r->threads++;
	note_progress(r, w);
	return 0;
}

static __always_inline bool in_time(struct panic_work *w) { return bpf_ktime_get_ns() < w->deadline; }

static __noinline u32 walk_threads(struct sink *to, struct panic_run *r, struct control *c)
{
	struct bpf_iter_task it;
	struct task_struct *t;
	u32 outcome = PANIC_WHOLE;
	bpf_iter_task_new(&it, 0, ITER_ALL_THREADS);
	while ((t = bpf_iter_task_next(&it))) {
		if (!t->tgid)
			continue; // the iterator begins with CPU 0's idle thread
		if (!in_time(to->w)) {
			outcome = PANIC_OUT_OF_TIME;
			break;
		}
		if (walk_thread(to, r, t, c)) {
			outcome = PANIC_NO_ROOM;
			break;
		}
	}
	bpf_iter_task_destroy(&it);
	return outcome;
}

// walk_idle writes the idle thread of a CPU, to which the runqueue of any thread there
// leads. False: there was no room.
static __noinline int walk_idle(struct sink *to, struct panic_run *r, struct task_struct *t, struct control *c)
{
	struct panic_work *w = to->w;
	w->cpu = t->thread_info.cpu;
	u32 cpu = w->cpu;
	struct panic_cpu *p = bpf_map_lookup_elem(&panic_cpus, &cpu);
	struct cpu_slot *slot = slot_of(cpu);
	if (!p || p->done || !slot)
		return 0;
	struct rq *rq = task_rq(t);
	struct task_struct *idle = rq ? rq->idle : 0;
	if (!idle || idle->thread_info.cpu != w->cpu)
		return 0; // the thread is on its way to another CPU
	if (!w->idle) {
		if (open_task(to, idle, c, 0))
			return NO_ROOM;
		w->task = 1; // task 0
		r->tasks++;
	}
	if (!sink_room(to, THREAD_MOST) || record_idle_head(to, idle, slot, w->cpu) || close_container(to, IDLE_ID | w->cpu))
		return NO_ROOM;
	p->done = 1;
	w->idle++;
	r->idle++;
	r->threads++;
	note_progress(r, w);
	return 0;
}

static __noinline u32 walk_idles(struct sink *to, struct panic_run *r, struct control *c)
{
	struct bpf_iter_task it;
	struct task_struct *t;
	u32 outcome = PANIC_WHOLE;
	bpf_iter_task_new(&it, 0, ITER_ALL_THREADS);
	while ((t = bpf_iter_task_next(&it))) {
		if (to->w->idle >= cfg_panic_cpus)
			break;
		if (!in_time(to->w)) {
			outcome = PANIC_OUT_OF_TIME;
			break;
		}
		if (walk_idle(to, r, t, c)) {
			outcome = PANIC_NO_ROOM;
			break;
		}
	}
	bpf_iter_task_destroy(&it);
	return outcome;
}

// forget_cpus clears the marks of an earlier walk.
static __noinline void forget_cpus(struct panic_work *w)
{
	w->cpu = 0;
	turns(4096) {
		u32 cpu = w->cpu++;
		struct panic_cpu *p = bpf_map_lookup_elem(&panic_cpus, &cpu);
		if (!p)
			return;
		p->done = 0;
	}
}

// sum_run sums up the head, so that a reader sees whether it is what was written.
static __noinline void sum_run(struct panic_run *r, struct panic_work *w)
{
	w->words = 0xcbf29ce484222325ull;
	w->at = __builtin_offsetof(struct panic_run, hook);
	turns(1024) {
		if (w->at >= __builtin_offsetof(struct panic_run, sum))
			break;
		u64 *word = region_at(PANIC_RUN_AT + w->at, 8);
		if (!word)
			break;
		w->words = (w->words ^ *word) * 0x100000001b3ull;
		w->at += 8;
	}
	r->sum = w->words;
}

static __always_inline u32 walk(struct sink *to, struct panic_run *r)
{
	struct panic_work *w = to->w;
	struct control *c = the_control();
	if (!c)
		return PANIC_NO_ROOM;
	forget_waits();
	forget_cpus(w);
	w->pos = cfg_records_at;
	w->end = cfg_region_bytes - LAST_END;
	w->task = w->idle = 0;
	u32 outcome = walk_threads(to, r, c);
	w->pos = cfg_records_at + r->bytes; // without what was begun and had no room
	w->end = cfg_region_bytes;
	if (end_task(to, r) || outcome != PANIC_WHOLE)
		return outcome;
	w->end = cfg_region_bytes - LAST_END;
	outcome = walk_idles(to, r, c);
	w->pos = cfg_records_at + r->bytes;
	w->end = cfg_region_bytes;
	end_task(to, r);
	return outcome;
}

#endif
