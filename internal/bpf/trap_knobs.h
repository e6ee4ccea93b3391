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
// before it records. By CPU number; the test's, before the stop. Package bpftest, Delay.
struct test_delay { u32 hold_ns, window_ns; };

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

// delay_window: a CPU that is late to record.
static __always_inline void delay_window(struct stop *s, struct trap_worker *w)
{
	struct test_delay *d = my_delay();
	if (d && d->window_ns)
		await_phase(s, PHASE_COMMITTED, w->held + d->window_ns);
}

#else

static __always_inline bool unwinds_only(void) { return 0; }
static __always_inline int unwind_only(struct sink *to, struct task_struct *t) { return 0; }
static __always_inline void delay_hold(void) {}
static __always_inline void delay_window(struct stop *s, struct trap_worker *w) {}

#endif
#endif
