// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// What the workers of a stop do with the word by which they agree (stop_word.h).
#ifndef STACKSHOT_STOP_H
#define STACKSHOT_STOP_H

// A swap fails only when another worker's swap succeeds, so few fail. No worker tries on
// past its deadline. A worker that gives up leaves the word as it is: its arrival does
// not count, a stop that lacks one of the committed is aborted, and the others leave at
// their own deadlines. The verifier wants a bound in turns beside the one in time.
enum { SWAPS = 1 << 14 };

// committed also sets the busy count to the arrived count: the workers that stop_finish
// must hear from. One swap does both, so none can finish before it is counted.
static __always_inline u64 committed(u64 w)
{
	return with_phase((w & ~(STOP_COUNT * STOP_BUSY)) | arrived_of(w) * STOP_BUSY, PHASE_COMMITTED);
}
// stop_arrive counts a worker in; the last one commits in the same swap, so no deadline
// can fall between. False: too late, or the deadline passed while it tried.
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

// stop_expire takes the decision at the arrival deadline, unless it is taken. Without the
// main worker there is no census, so the stop is aborted.
static __noinline void stop_expire(struct stop *s, u64 by)
{
	turns_unless(SWAPS, bpf_ktime_get_ns() >= by) {
		u64 old = peek(s->word);
		if (phase_of(old) != PHASE_ARRIVING ||
			swapped(s, old, old & STOP_MAIN ? committed(old) : with_phase(old, PHASE_ABORTED)))
			return;
	}
}

// stop_hold counts a worker whose interrupts are off. With gone, the worker has waited for
// the others too long and aborts the stop, unless they have come since: once all are
// held, some may be recording.
static __noinline void stop_hold(struct stop *s, u32 gone, u64 by)
{
	turns_unless(SWAPS, bpf_ktime_get_ns() >= by) {
		u64 old = peek(s->word);
		if (phase_of(old) != PHASE_COMMITTED || (gone && held_of(old) == arrived_of(old)) ||
			swapped(s, old, gone ? with_phase(old, PHASE_ABORTED) : old + STOP_HELD))
			return;
	}
}

// stop_finish says that a worker has recorded all it will. The last one makes DRAINED, which
// starts the second pass: nothing that it compares with is still being written.
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

// stop_release ends the stop for all. Every worker calls it on its way out; the first call
// counts. An aborted stop stays aborted, so that the coordinator repeats it.
static __noinline void stop_release(struct stop *s, u64 by)
{
	turns_unless(SWAPS, bpf_ktime_get_ns() >= by) {
		u64 old = peek(s->word);
		if ((phase_of(old) != PHASE_COMMITTED && phase_of(old) != PHASE_DRAINED) ||
			swapped(s, old, with_phase(old, PHASE_RELEASED)))
			return;
	}
}

// Waits look at the clock and do not trust it. With interrupts off on every CPU nobody
// counts jiffies, and a clock source of few bits wraps around (acpi_pm, 24 bits: the
// kernel then reads the same time for 2.3 s). If the clock has not moved for this many
// turns, some 20 ms and more, the wait ends.
enum { CLOCK_TURNS = 1 << 20 };

// await_phase waits while the phase is p, at most until by (ktime, ns). It reads by plain
// loads: an atomic would take the line from the workers that change the word.
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

// stop_leave says that not all CPUs are held any more. Each worker calls it before it turns
// its interrupts on. It is an exchange of a word of its own and not a bit of the state
// word, since a compare-and-swap may be given up and an exchange always succeeds.
static __always_inline void stop_leave(struct stop *s)
{
	u32 was = __sync_lock_test_and_set(&s->over, 1);
	hide(was);
}

// all_held says that the stop is committed and every CPU that was counted in has its
// interrupts off. observe orders the reads: over is read after the word. If
// nobody has set it by then, no CPU had turned its interrupts on when the word was read.
static __always_inline bool all_held(struct stop *s)
{
	u64 w = observe(&s->word);
	return phase_of(w) == PHASE_COMMITTED && held_of(w) == arrived_of(w) && !observe(&s->over);
}

// await_held waits until all committed CPUs are held, or the stop is over, or by (ktime, ns).
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

// still_recording is asked before each item and thread: nobody records on past the release,
// without memory, after a cancel, or past its own deadline.
static __always_inline bool still_recording(struct stop *s, struct trap_worker *me)
{
	u64 w = peek(s->word);
	return phase_of(w) == PHASE_COMMITTED && !(w & (STOP_NO_SPACE | STOP_EARLY)) &&
		bpf_ktime_get_ns() < me->pause_by;
}

// stop_no_space says that memory ran out. It is not a fetch-and-or: the x86 JIT makes a
// loop of that, which asks no clock.
static __noinline void stop_no_space(struct stop *s, u64 by)
{
	turns_unless(SWAPS, bpf_ktime_get_ns() >= by) {
		u64 old = peek(s->word);
		if ((old & STOP_NO_SPACE) || swapped(s, old, old | STOP_NO_SPACE))
			return;
	}
}

#endif
