// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// What the loader and the programs share: constants fixed before loading, and
// the two mapped structures. Go's side (shared.go) is generated from them.
#ifndef STACKSHOT_SHARED_H
#define STACKSHOT_SHARED_H

// Set by the loader before the programs are loaded; constant after.
const volatile u32 cfg_page_shift = 12;
const volatile u32 cfg_stack_bytes = 127 * 8; // kernel stack asked for, multiple of 8
const volatile u32 cfg_redact;                // leave out register and argument values
const volatile u32 cfg_latency;               // 1: time tasks (trap), 2: threads too
const volatile u32 cfg_wait;                  // record what threads wait for
const volatile u32 cfg_self_tgid;             // the snapshotter, in its own pid namespace

#define PAGE_BYTES(n) ((u64)(n) << cfg_page_shift)

// hide keeps the compiler from using what it knows of x, so that the bound
// that follows is checked where the verifier can see it.
#define hide(x) asm volatile("" : "+r"(x))

// Plain reads that must reach memory. They order nothing.
#define peek(x) (*(volatile __typeof__(x) *)&(x))

// What a refused record answers where the sink has no more room.
#define NO_ROOM (-28) // -ENOSPC

#define MAX_FRAMES 1000

// Where the time for a thread goes, ns, with per-thread latency only: its head
// before the stack, the stack, the rest of the head.
struct laps { u64 clock, head, stack, rest; };

static __always_inline u64 lap(struct laps *l)
{
	if (cfg_latency < 2)
		return 0;
	u64 was = l->clock;
	l->clock = bpf_ktime_get_ns();
	return l->clock - was;
}

// Written by the loader between captures, read here.
struct control {
	u64 boot_epoch_ns; // CLOCK_REALTIME minus CLOCK_BOOTTIME
	u32 armed;         // the switch hook notes what the workers displace
	u32 ns_level;      // depth of our pid namespace; written by the census
	u64 ktime_ns, boot_ns; // CLOCK_MONOTONIC and CLOCK_BOOTTIME when the census first ran; written by it
};

// What one CPU was doing when the stop took it, and our worker there. One per
// possible CPU. worker_tid: written by the loader before the stop; threads,
// begun, done, open_id: by the worker's own programs (begun and done cleared
// by the worker between two tasks); ran_*, displaced_*, *_ns and rq_clock: by the switch hook on
// that CPU while armed; nr_running: by record_idle.
struct cpu_slot {
	u32 worker_tid;
	u32 begun;     // a container begin was written and its end was not
	u32 done;      // the task's end was written
	u32 unused;
	u32 threads;   // threads recorded
	u32 nr_running;
	u32 ran_tid, ran_tgid;
	u32 ran_known;
	u32 left;     // released: what comes after is not the stop's; written by the worker, or its trap
	u64 stop_ns;  // ktime of the switch to the worker
	u64 rq_clock; // runqueue clock at that moment; 0: not known
	u64 open_id;  // id of the open container
	u64 displaced_at;  // ktime when one of our own threads took the CPU from displaced_tid
	u32 displaced_tid; // 0: the thread before ours is ran_tid, or was idle
	u32 reserved2;
	u64 gone_ns;  // ktime of the first switch away from the worker after that
	u64 pad[5];   // to 128 bytes: two CPUs never share a line pair
};

#endif
