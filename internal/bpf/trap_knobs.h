// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// What tests and benchmarks ask of the trap; knobs.h says how it stays out of what
// ships.
#ifndef STACKSHOT_TRAP_KNOBS_H
#define STACKSHOT_TRAP_KNOBS_H

#ifdef STACKSHOT_TEST

// Set before the program is loaded; constant after.
const volatile u32 test_floor; // unwind each thread and record nothing

// How long a CPU spins: between the decision and interrupts off; and in the window,
// before it records. With panic_ns it then does to the stop's word what a panic does,
// in the phase named, and notes when. By CPU number; the test's, before the stop.
// Package bpftest, Delay.
struct test_delay { u32 hold_ns, window_ns, panic_ns, panic_phase; u64 panicked; };

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1024);
	__type(key, u32);
	__type(value, struct test_delay);
} test_delays SEC(".maps");

static __always_inline bool unwinds_only(void) { return test_floor; }

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

static __noinline void spin_until(u64 by)
{
	u64 was = bpf_ktime_get_ns();
	turns(CLOCK_TURNS) {
		if (bpf_ktime_get_ns() >= by)
			return;
	}
	if (bpf_ktime_get_ns() <= was)
		return;
	turns(TURNS_MOST) {
		if (bpf_ktime_get_ns() >= by)
			return;
	}
}

static __always_inline struct test_delay *my_delay(void)
{
	u32 cpu = bpf_get_smp_processor_id();
	return bpf_map_lookup_elem(&test_delays, &cpu);
}

// delay_hold: a CPU that is late to turn its interrupts off.
static __always_inline void delay_hold(void)
{
	struct test_delay *d = my_delay();
	if (d && d->hold_ns)
		spin_until(bpf_ktime_get_ns() + d->hold_ns);
}

// play_panic changes the word as panic.bpf.c does (end_stop).
static __noinline void play_panic(struct stop *s, u32 phase, u64 since)
{
	struct test_delay *d = my_delay();
	if (!d || !d->panic_ns || d->panic_phase != phase)
		return;
	spin_until(since + d->panic_ns);
	turns(64) {
		u64 old = peek(s->word), now = bpf_ktime_get_ns();
		if (phase_of(old) != phase)
			return;
		if (swapped(s, old, with_phase(old, PHASE_PANICKED))) {
			d->panicked = now;
			return;
		}
	}
}

// delay_window: a CPU that is late to record.
static __always_inline void delay_window(struct stop *s, struct trap_worker *w)
{
	struct test_delay *d = my_delay();
	if (d && d->window_ns)
		await_phase(s, PHASE_COMMITTED, w->held + d->window_ns);
	play_panic(s, PHASE_COMMITTED, w->held);
}

static __always_inline void delay_verify(struct stop *s, struct trap_worker *w) { play_panic(s, PHASE_DRAINED, w->checked); }

#else

static __always_inline bool unwinds_only(void) { return 0; }
static __always_inline int unwind_only(struct sink *to, struct task_struct *t) { return 0; }
static __always_inline void delay_hold(void) {}
static __always_inline void delay_window(struct stop *s, struct trap_worker *w) {}
static __always_inline void delay_verify(struct stop *s, struct trap_worker *w) {}

#endif
#endif
