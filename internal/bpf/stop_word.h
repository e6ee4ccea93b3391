// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// The stop, and the one word by which its workers agree: State of
// internal/engine/stop/state.go, in BPF. docs/concurrency.md draws its phases. Bits 48-63,
// which Go leaves at 0, count the committed workers whose interrupts are off: recording
// begins when all have. Every change is a compare-and-swap of the whole word, so phase
// and counts never contradict each other.
#ifndef STACKSHOT_STOP_WORD_H
#define STACKSHOT_STOP_WORD_H

// The stop. word and want are State of internal/engine/stop/state.go, which says who
// writes them. The main worker's Go side writes arrive_by and pause_by before it opens
// the gate, the loader the rest of the first line, while nobody runs.
struct stop {
	u64 word, want, arrive_by, pause_by;
	u64 arrive_ns, pause_ns; // the budgets: no worker waits for longer from its own entry on
	u64 hold_ns;     // longest wait of one CPU, interrupts off, for the others
	u32 chunk;       // bytes a worker takes at once
	u32 split;       // threads of one part of a task; 0: tasks are whole
	u32 asked;       // tgids in map asked; 0: every task
	u32 pad0[15];
	// Written by the main worker in the window.
	u64 seen_tasks, seen_threads;
	u32 census_whole;
	u32 pad1[27];
	u32 pieces; // handed out, by any worker
	u32 pad2[31];
	// The second pass: items and places handed out, workers done; by any worker.
	u32 verify_next, seconds, verified;
	u32 over; // a CPU that was held is about to go; any worker sets it
	u32 pad3[28];
};

enum { PHASE_IDLE, PHASE_ARRIVING, PHASE_COMMITTED, PHASE_DRAINED, PHASE_RELEASED, PHASE_ABORTED, PHASE_PANICKED };
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

static __always_inline u64 with_phase(u64 w, u64 p) { return (w & ~0xffull) | p; }
static __always_inline bool swapped(struct stop *s, u64 old, u64 next)
{
	return __sync_val_compare_and_swap(&s->word, old, next) == old;
}

#endif
