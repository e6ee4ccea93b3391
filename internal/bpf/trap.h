// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// What the trap and the loader share. Go's side (shared.go) is generated from it.
#ifndef STACKSHOT_TRAP_H
#define STACKSHOT_TRAP_H

// Sizes of the maps, set with them before loading.
const volatile u32 cfg_queue_items;
const volatile u32 cfg_pieces;

// One worker, by CPU number. The first line: the loader's side, while nobody
// runs; the rest: the program on that CPU.
struct trap_worker {
	u32 tid, main, works, kind, cluster, slot;
	u32 pad0[26];

	u64 entered, arrived, decided, held, drained, checked, verified, left, census_ns;
	u64 arrive_by, pause_by; // the stop's, or those of its own entry where they are sooner
	u32 in, level; // part of the stop; bit 0: preemption was off, bit 1: interrupts
	u32 pos, end;  // the rest of its chunk
	u32 next_pos, next_end;
	u32 piece_from;          // where the open piece began
	u32 last_piece;          // of the open part, in the pool, plus one; 0: it has its first only
	u32 number;              // item at work, plus one; 0: none
	u32 todo, threads, more; // of the part: threads to go, recorded; further ones follow
	u64 since;               // waits for an item since
	u64 idle_at;             // the clock when it was last held against the turns
	u32 idle, pad2;          // turns since then
	u32 walk, walk_prev;     // links, while it holds a freelist's lock
	u64 spill;               // bytes from other clusters' arenas
	u32 giver, pad1;         // the cluster to ask next
	u64 clock;               // when the last step of an item ended; 0 without latency
	u64 switches, runtime;   // of the part: sums over its threads
	u64 unwind_ns;           // in the kernel's unwinder, with per-thread latency
	u32 compared, seen;      // second pass: threads compared; of the part, met again
	u64 off;                 // its interrupts are off (preemption, where they cannot be)
	u64 switched;            // context switches of its thread, at left
	u32 broken;              // of them, since arrived
	// What the sink keeps from thread to thread (sink_seq.h). On the stack each
	// value of it was one more state for 6.12's verifier to walk the record code in.
	u32 shallow;
	u64 open;
	struct laps laps;
};

// What came of an item, by its number in the queue: written by the worker that
// claimed it. A part begins with one piece; the others are linked.
struct trap_part {
	u32 worker; // CPU plus one; 0: nobody took it
	u32 state;  // enum part_state
	u32 threads;
	u32 flags; // bit 0: it opened the container, bit 1: it closed it
	u32 off, len, more; // first piece; the next one's number plus one
	u32 verdict;        // of the second pass, enum part_verdict; by who takes it then
	u64 switches, runtime; // sums over its threads: context switches, run time (ns)
	u32 setup_ns, head_ns, threads_ns, end_ns;
};

enum part_state { PART_TAKEN = 0, PART_WHOLE = 1, PART_VANISHED = 2, PART_CUT = 3, PART_NO_ROOM = 4 };
enum { PART_OPENED = 1, PART_CLOSED = 2 };
// UNCHANGED: no thread of it ran since. CHANGED: what its threads count now
// stands in map seconds, as far as there is room (else UNNAMED).
enum part_verdict { PART_UNCHECKED = 0, PART_UNCHANGED = 1, PART_CHANGED = 2, PART_UNNAMED = 3, PART_GONE = 4 };

// One thread of a changed part as the second pass found it.
struct trap_second { u32 tid, part; u64 switches, runtime; };

struct trap_piece { u32 off, len, more, reserved; };

const struct trap_piece *unused_piece __attribute__((unused));
const struct trap_second *unused_second __attribute__((unused));

ONE_VALUE(stops, struct stop);
ONE_VALUE(workers, struct trap_worker); // one per possible CPU
ONE_VALUE(parts, struct trap_part);     // cfg_queue_items
ONE_VALUE(pieces, struct trap_piece);   // cfg_pieces
ONE_VALUE(seconds, struct trap_second); // as many as Go makes room for
ONE_VALUE(asked, u64);                  // tgids (an element takes 8 bytes); the loader's side, while nobody runs

// Where the first threads of a part are, for the second pass to fetch: only speed
// depends on it. By item number; written by who recorded the part, where the task
// has HINTS_FROM threads; 64 is as many as a part has by default. Not mapped: it
// holds addresses. The number of elements is the loader's.
enum { HINTS = 64, HINTS_FROM = 4 };
struct hints { u64 task[HINTS]; };
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct hints);
} hints SEC(".maps");

static __always_inline struct hints *hints_of(u32 number) { return bpf_map_lookup_elem(&hints, &number); }

static __always_inline struct stop *the_stop(void)
{
	u32 zero = 0;
	return bpf_map_lookup_elem(&stops, &zero);
}
static __always_inline struct trap_worker *worker_of(u32 cpu) { return bpf_map_lookup_elem(&workers, &cpu); }
// panicked says that the kernel panics and wants its CPUs. The one that panicked may be in the
// middle of the trap itself (by NMI), with a lock that it never gives back.
static __always_inline bool panicked(void)
{
	struct stop *s = the_stop();
	return !s || phase_of(peek(s->word)) == PHASE_PANICKED;
}
// pause_over says that nothing may be waited for any more.
static __always_inline bool pause_over(void)
{
	struct trap_worker *w = worker_of(bpf_get_smp_processor_id());
	return !w || bpf_ktime_get_ns() >= w->pause_by || panicked();
}
static __always_inline struct trap_part *part_of(u32 number) { return bpf_map_lookup_elem(&parts, &number); }
static __always_inline struct trap_piece *piece_of(u32 number) { return bpf_map_lookup_elem(&pieces, &number); }
static __always_inline struct trap_second *second_of(u32 number) { return bpf_map_lookup_elem(&seconds, &number); }
static __always_inline u64 *asked_of(u32 number) { return bpf_map_lookup_elem(&asked, &number); }

#endif
