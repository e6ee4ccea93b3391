// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// What the panic programs and the loader share. Go's side (panic.go) is generated from
// it; package panicregion reads it out of a crash dump.
#ifndef STACKSHOT_PANIC_H
#define STACKSHOT_PANIC_H

// Set by the loader before the programs are loaded; constant after.
const volatile u64 cfg_panic_pause;    // ns, for all of one walk
const volatile u32 cfg_records_at;     // where the records begin in the region
const volatile u32 cfg_sysrq_key;      // the key that asks for a capture
const volatile u32 cfg_sysrq_wakes;    // the key only wakes the process, which takes an ordinary capture
const volatile u32 cfg_panic_cpus;     // possible CPUs

// The head is the first page of the region. Its first half is the loader's (package
// panicregion); the second half is struct panic_run.
enum { PANIC_RUN_AT = 2048 };

// How a walk stands, struct panic_run.state. FREE and READ lead to TAKEN by
// compare-and-swap, so one walk has the region at a time.
//
//	FREE ──► TAKEN ──► DONE ──► FREE      a SysRq: the process saves what was recorded
//	FREE ──► TAKEN ──► LEFT               a panic: final
//	DONE ──► TAKEN                        a panic takes what a SysRq left and nobody has saved
enum panic_state { PANIC_FREE = 0, PANIC_TAKEN = 1, PANIC_DONE = 2, PANIC_LEFT = 3 };

// How a walk ended. IN_PROGRESS: it did not, and what stands in bytes is whole.
enum panic_outcome { PANIC_IN_PROGRESS = 0, PANIC_WHOLE = 1, PANIC_NO_ROOM = 2, PANIC_OUT_OF_TIME = 3 };

// Which hook began it.
enum panic_hook { HOOK_SYSRQ = 1, HOOK_PANIC = 2, HOOK_CRASH = 3 }; // crash: an oops of which the machine dies

enum { PANIC_ARGS = 6, PANIC_TEXTS = 4, PANIC_FORMAT = 128, PANIC_TEXT = 64 };

// One walk. The first line: state by whoever takes or frees the region; nested by who finds
// it taken; lost by a panic that takes what nobody has saved. The rest: the walk alone.
// bytes, open, tasks and threads are written after each thread, in that order from the
// end: what is recorded up to bytes is whole whenever the machine dies.
struct panic_run {
	u64 state, nested, lost;
	u64 pad0[13];
	u32 hook, outcome;
	u32 key;      // of a SysRq
	u32 checked;  // by keyboard or serial line: the kernel asks its mask
	u32 cpu, tid, tgid;
	u32 level;    // bit 0: preemption was off, bit 1: interrupts
	u64 began, ended;      // CLOCK_MONOTONIC, ns
	u64 began_boot;        // CLOCK_BOOTTIME, ns
	u64 bytes;             // recorded, from cfg_records_at on
	u64 open;              // tgid of the container that is open there, plus one; 0: none
	u32 tasks, threads;    // recorded
	u32 idle;              // of the threads, idle ones
	u32 texts;             // bit n: text[n] was read
	u32 live;              // captures that were told to let go of the machine
	u32 followed;          // an oops came to panic() after its walk: format, args and text are of that
	char comm[16];
	u64 args[PANIC_ARGS];  // of panic(), behind its format
	char format[PANIC_FORMAT];
	char text[PANIC_TEXTS][PANIC_TEXT]; // what the first args point to, if they point to the kernel's memory
	u64 caller;            // of panic(), where a kprobe's stack lacks it (arm64: the link register); 0: it is in the stack
	u64 sum;               // of all words from hook up to here, written last (panic_sum)
};
_Static_assert(PANIC_RUN_AT + sizeof(struct panic_run) <= 4096, "the head is one page");
const struct panic_run *unused_panic_run __attribute__((unused));

// What a walk keeps while it lasts: there is one, since one walk has the region.
struct panic_work {
	u32 pos, end;
	u64 deadline; // CLOCK_MONOTONIC, ns
	u64 task;     // tgid of the task whose container is open, plus one; 0: none
	u64 shallow, open; // what the record code keeps from thread to thread (sink_seq.h)
	struct laps laps;
	u32 cpu, idle; // CPUs whose idle thread is recorded
	u64 words, at; // of the head, to be summed up
};
ONE_VALUE(panic_works, struct panic_work);

// CPUs whose idle thread is recorded, by number: cleared by the walk.
struct panic_cpu { u32 done, pad; };
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct panic_cpu);
} panic_cpus SEC(".maps");

// Words that the process keeps current, for the hook of the SysRq.
struct panic_ask {
	u32 mask; // kernel.sysrq; by the process
	u32 pad;
	u64 refused; // keys that came by keyboard or serial line, which the mask refuses; by the hook
	u64 asked;   // keys that were for us; by the hook
};
ONE_VALUE(panic_asks, struct panic_ask);
const struct panic_ask *unused_panic_ask __attribute__((unused));

// Wakes the process when a SysRq has come. One u32, the key, for each.
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} panic_rings SEC(".maps");

// Stops of captures that run now (struct stop of trap.h): each session that stops the machine
// puts its own there when it has loaded its trap, and the next one takes its place.
enum { LIVE_STOPS = 4 };
struct live_stop {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(struct stop));
};
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, LIVE_STOPS);
	__type(key, u32);
	__array(values, struct live_stop);
} panic_live SEC(".maps");

#endif
