// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// The one word by which the workers of a stop agree: State of
// internal/engine/stop/state.go, in BPF. Bits 48-63, which Go leaves at 0, count the
// committed workers whose interrupts are off: recording begins when all have.
#ifndef STACKSHOT_STOP_H
#define STACKSHOT_STOP_H

enum { PHASE_IDLE, PHASE_ARRIVING, PHASE_COMMITTED, PHASE_DRAINED, PHASE_RELEASED, PHASE_ABORTED };
#define STOP_MAIN (1ull << 8)
#define STOP_NO_SPACE (1ull << 9)
#define STOP_EARLY (1ull << 10)
#define STOP_ARRIVED (1ull << 16)
#define STOP_BUSY (1ull << 32)
#define STOP_HELD (1ull << 48)
#define STOP_COUNT 0xffff

#define phase_of(w) ((w) & 0xff)
#define arrived_of(w) ((w) >> 16 & STOP_COUNT)
#define busy_of(w) ((w) >> 32 & STOP_COUNT)
#define held_of(w) ((w) >> 48 & STOP_COUNT)

// A swap is lost only when another worker's succeeds, so few are lost. No worker
// tries on past its deadline. If it gives up, the word stays as it is: its arrival
// does not count, a stop that lacks one of the committed is aborted, and the others
// leave at their own deadlines.
enum { SWAPS = 1 << 14 };

static __always_inline u64 with_phase(u64 w, u64 p) { return (w & ~0xffull) | p; }
static __always_inline u64 committed(u64 w)
{
	return with_phase((w & ~(STOP_COUNT * STOP_BUSY)) | arrived_of(w) * STOP_BUSY, PHASE_COMMITTED);
}
static __always_inline bool swapped(struct stop *s, u64 old, u64 next)
{
	return __sync_val_compare_and_swap(&s->word, old, next) == old;
}

// stop_arrive counts a worker in; the last one commits. False: too late.
static __noinline int stop_arrive(struct stop *s, u32 main, u64 by)
{
	turns_unless(SWAPS, bpf_ktime_get_ns() >= by) {
		u64 old = peek(s->word);
		if (phase_of(old) != PHASE_ARRIVING)
			return 0;
		u64 next = (old + STOP_ARRIVED) | (main ? STOP_MAIN : 0);
		if (arrived_of(next) == s->want)
			next = committed(next);
		if (swapped(s, old, next))
			return 1;
	}
	return 0;
}

// stop_expire takes the decision at the arrival deadline, if nobody has.
static __noinline void stop_expire(struct stop *s, u64 by)
{
	turns_unless(SWAPS, bpf_ktime_get_ns() >= by) {
		u64 old = peek(s->word);
		if (phase_of(old) != PHASE_ARRIVING ||
			swapped(s, old, old & STOP_MAIN ? committed(old) : with_phase(old, PHASE_ABORTED)))
			return;
	}
}

// stop_hold counts a worker whose interrupts are off; gone says that it waited
// for the others too long: then the stop ends, unless they have come since.
static __noinline void stop_hold(struct stop *s, u32 gone, u64 by)
{
	turns_unless(SWAPS, bpf_ktime_get_ns() >= by) {
		u64 old = peek(s->word);
		if (phase_of(old) != PHASE_COMMITTED || (gone && held_of(old) == arrived_of(old)) ||
			swapped(s, old, gone ? with_phase(old, PHASE_ABORTED) : old + STOP_HELD))
			return;
	}
}

static __noinline void stop_finish(struct stop *s, u64 by)
{
	turns_unless(SWAPS, bpf_ktime_get_ns() >= by) {
		u64 old = peek(s->word), next = old - STOP_BUSY;
		if (busy_of(next) == 0 && phase_of(old) == PHASE_COMMITTED)
			next = with_phase(next, PHASE_DRAINED);
		if (swapped(s, old, next))
			return;
	}
}

static __noinline void stop_release(struct stop *s, u64 by)
{
	turns_unless(SWAPS, bpf_ktime_get_ns() >= by) {
		u64 old = peek(s->word);
		if ((phase_of(old) != PHASE_COMMITTED && phase_of(old) != PHASE_DRAINED) ||
			swapped(s, old, with_phase(old, PHASE_RELEASED)))
			return;
	}
}

// Waits look at the clock, and do not trust it: with interrupts off everywhere
// nobody counts jiffies, and a clock source of few bits comes round (acpi_pm, 24
// bits: the kernel then reads the same time for 2.3 s). One that has not moved
// for so many turns, some 20 ms and more, ends the wait.
enum { CLOCK_TURNS = 1 << 20 };

// await_phase waits while the phase is p, at most until by (ktime, ns).
static __noinline void await_phase(struct stop *s, u32 p, u64 by)
{
	turns(1024) {
		u64 was = bpf_ktime_get_ns();
		turns(CLOCK_TURNS) {
			if (phase_of(peek(s->word)) != p || bpf_ktime_get_ns() >= by)
				return;
		}
		if (bpf_ktime_get_ns() <= was)
			return;
	}
}

// stop_leave says, before the first of them turns its interrupts on, that not all
// are held any more. A swap can be given up; this cannot.
static __always_inline void stop_leave(struct stop *s)
{
	u32 was = __sync_lock_test_and_set(&s->over, 1);
	hide(was);
}

// all_held: committed, and every CPU that was counted in has its interrupts off.
static __always_inline bool all_held(struct stop *s)
{
	u64 w = observe(&s->word);
	return phase_of(w) == PHASE_COMMITTED && held_of(w) == arrived_of(w) && !observe(&s->over);
}

static __noinline void await_held(struct stop *s, u64 by)
{
	turns(1024) {
		u64 was = bpf_ktime_get_ns();
		turns(CLOCK_TURNS) {
			u64 w = peek(s->word);
			if (phase_of(w) != PHASE_COMMITTED || held_of(w) == arrived_of(w) || bpf_ktime_get_ns() >= by)
				return;
		}
		if (bpf_ktime_get_ns() <= was)
			return;
	}
}

static __always_inline bool still_recording(struct stop *s, struct trap_worker *me)
{
	u64 w = peek(s->word);
	return phase_of(w) == PHASE_COMMITTED && !(w & (STOP_NO_SPACE | STOP_EARLY)) &&
		bpf_ktime_get_ns() < me->pause_by;
}

// stop_no_space says that memory ran out. No fetch-and-or, which on x86 is a loop
// that asks no clock.
static __noinline void stop_no_space(struct stop *s, u64 by)
{
	turns_unless(SWAPS, bpf_ktime_get_ns() >= by) {
		u64 old = peek(s->word);
		if ((old & STOP_NO_SPACE) || swapped(s, old, old | STOP_NO_SPACE))
			return;
	}
}

#endif
